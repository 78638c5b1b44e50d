// The rules of a client that comes back by itself (docs/reference/events.md). No I/O, no clock: times and draws come in.
// The Python client has the same rules: src/everstep/client/rules.py.

export type Way = "websocket" | "sse" | "poll";
export type Place = number | string;

export interface JournalEvent {
  task: string;
  seq: number;
  at: string;
  type: string;
  step: string | null;
  data: Record<string, unknown>;
  [more: string]: unknown;
}

export interface Frame {
  type: string;
  seq?: number;
  cursor?: string;
  event?: JournalEvent;
  [more: string]: unknown;
}

export const SILENCE_MS = 40_000; // whoever has heard nothing for so long is cut off, and does not know it yet
export const FIRST_MS = 500;
export const LONGEST_MS = 30_000;
export const STABLE_MS = 10_000; // a connection that stood for so long is a good one: waiting begins anew
export const TRIES = 3; // so many failed tries in a row make the next way better
export const AGAIN_MS = 60_000; // after so long on another way the WebSocket is tried again
const TASKS_KNOWN_MAX = 10_000;
const WAYS: readonly Way[] = ["websocket", "sse", "poll"];

/** Close codes that end it for good, and their word; after every other one the client comes back. */
export const STOP_CODES: Readonly<Record<number, string>> = {
  1008: "rate_limited",
  1009: "too_large",
  4400: "bad_request",
  4401: "unauthenticated",
  4404: "not_found",
};

/** How long to wait before the next try. */
export class Backoff {
  private cuts = 0;
  private openedAt: number | null = null;

  opened(now: number): void {
    this.openedAt = now;
  }

  /** Milliseconds to wait; what the server asks for wins. `draw` is uniform in [0, 1). */
  cut(now: number, draw: number, retryAfterMs: number | null = null): number {
    if (this.openedAt !== null && now - this.openedAt >= STABLE_MS) this.cuts = 0;
    this.openedAt = null;
    const wait = draw * Math.min(LONGEST_MS, FIRST_MS * 2 ** this.cuts);
    this.cuts += 1;
    return retryAfterMs ?? wait;
  }
}

/** Which way to try next: WebSocket, then server-sent events, then long poll; and up again. */
export class Ladder {
  private rung = 0;
  private failures = 0;
  private againAt = 0;

  choose(now: number): Way {
    if (this.rung > 0 && now >= this.againAt) {
      this.againAt = now + AGAIN_MS;
      return "websocket";
    }
    return WAYS[this.rung] ?? "poll";
  }

  /** How long to stay on a way before the first is tried again; null: for ever. */
  patience(way: Way, now: number): number | null {
    return way === "websocket" ? null : Math.max(0, this.againAt - now);
  }

  opened(way: Way): void {
    this.failures = 0;
    if (way === "websocket") this.rung = 0;
  }

  failed(way: Way, now: number): void {
    if (way !== WAYS[this.rung]) return;
    this.failures += 1;
    if (this.failures >= TRIES && this.rung + 1 < WAYS.length) {
      this.failures = 0;
      this.rung += 1;
      this.againAt = now + AGAIN_MS;
    }
  }
}

/** What to do with a frame: it is news, it was seen before, or something before it is missing. */
export type Verdict = "news" | "old" | "hole";

/** How far the stream of one task has come. */
export class TaskPlace {
  after: number | null;
  private readonly dense: boolean;

  constructor(after: number | null, dense: boolean) {
    this.after = after;
    this.dense = dense;
  }

  judge(frame: Frame): Verdict {
    const last = this.after ?? 0;
    if (frame.type === "snapshot") this.after = frame.seq ?? last;
    else if (frame.type === "event" && frame.event) {
      const seq = frame.event.seq;
      if (seq <= last) return "old";
      if (this.dense && seq > last + 1) return "hole";
      this.after = seq;
    } else if ((frame.type === "live" || frame.type === "heartbeat") && !this.dense) {
      this.after = Math.max(last, frame.seq ?? 0);
    }
    return "news";
  }
}

/** How far the stream of all tasks has come: a cursor, and what is known of each task. */
export class LinePlace {
  after: string | null;
  private readonly dense: boolean;
  private readonly seen = new Map<string, number>();

  constructor(after: string | null, dense: boolean) {
    this.after = after;
    this.dense = dense;
  }

  judge(frame: Frame): Verdict {
    const verdict = frame.type === "event" && frame.event ? this.next(frame.event.task, frame.event.seq) : "news";
    if (verdict === "hole") return verdict;
    if (frame.cursor !== undefined && (frame.type !== "hello" || this.after === null)) this.after = frame.cursor;
    return verdict;
  }

  private next(task: string, seq: number): Verdict {
    const last = this.seen.get(task);
    if (this.dense && last !== undefined && seq > last + 1) return "hole";
    this.seen.delete(task);
    this.seen.set(task, Math.max(last ?? 0, seq));
    if (this.seen.size > TASKS_KNOWN_MAX) {
      const oldest = this.seen.keys().next();
      if (!oldest.done) this.seen.delete(oldest.value);
    }
    return seq <= (last ?? 0) ? "old" : "news";
  }
}
