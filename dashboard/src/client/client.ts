// The client of a served engine: requests, and streams that come back by themselves. Plain TypeScript, no dependencies.
//
//   const client = new Client({ url: location.origin, token });
//   for await (const frame of client.frames({ task, signal })) { … }

import { Backoff, Ladder, LinePlace, TaskPlace } from "./rules.ts";
import type { Frame, JournalEvent, Place } from "./rules.ts";
import { Cut, Over, Refused, ask, poll, refusal, serverSent, websocket } from "./ways.ts";
import type { Server, Wanted } from "./ways.ts";

export { Refused } from "./ways.ts";
export type { Frame, JournalEvent, Place } from "./rules.ts";

/** Live: by WebSocket; polling: by another way; waiting: nobody answers, and when the next try is. */
export type Connection = { state: "live" | "polling" } | { state: "waiting"; until: number };

export interface Watching {
  /** Whose events; without it those of all tasks. */
  task?: string;
  /** What has been seen: a seq, or a cursor. */
  after?: Place;
  /** Types, or beginnings such as `step.`, with commas between them. */
  types?: string;
  ticks?: boolean;
  /** Stop when the task ends. */
  untilEnd?: boolean;
  /** Stop when somebody says so. */
  signal?: AbortSignal;
  /** How it stands with the connection, whenever that changes. */
  onConnection?: (connection: Connection) => void;
}

const TRIES = { websocket, sse: serverSent, poll } as const;

export class Client {
  private readonly server: Server;

  constructor(server: { url: string; token?: string | null }) {
    this.server = { url: server.url.replace(/\/$/, ""), token: server.token ?? null };
  }

  /** Any route of the API; a refusal is thrown as `Refused`. */
  async request<Reply = unknown>(method: string, path: string, body?: unknown): Promise<Reply> {
    const reply = await ask(this.server, method, path, body);
    if (!reply.ok) throw await refusal(reply);
    return (reply.status === 204 ? null : await reply.json()) as Reply;
  }

  /** Events only: each once and in order, over cuts and restarts. */
  async *events(watching: Watching = {}): AsyncGenerator<JournalEvent> {
    const begin: Watching = watching.task !== undefined ? { after: 0, ...watching } : watching;
    for await (const frame of this.frames(begin)) {
      if (frame.type === "event" && frame.event) yield frame.event;
      if (frame.type === "resync_required") {
        throw new Refused(410, { code: "resync_required", message: "the journal no longer has that place", details: frame });
      }
    }
  }

  /** The stream as it is: snapshot, events, ticks, output, notices. A snapshot with `reset` replaces what was known. */
  async *frames(watching: Watching = {}): AsyncGenerator<Frame> {
    const signal = watching.signal ?? new AbortController().signal;
    const place = placeOf(watching);
    const wanted = wantedOf(watching, place);
    const backoff = new Backoff();
    const ladder = new Ladder();
    while (!signal.aborted) {
      const way = ladder.choose(Date.now());
      const attempt = new AbortController();
      const stop = (): void => attempt.abort();
      signal.addEventListener("abort", stop);
      const patience = ladder.patience(way, Date.now());
      const better = patience === null ? undefined : setTimeout(stop, patience);
      let opened = false;
      let wait = 0;
      try {
        for await (const frame of TRIES[way](this.server, wanted, attempt.signal)) {
          if (!opened) {
            opened = true;
            ladder.opened(way);
            backoff.opened(Date.now());
            watching.onConnection?.({ state: way === "websocket" ? "live" : "polling" });
          }
          const verdict = place.judge(frame);
          if (verdict === "hole") throw new Cut("an event is missing");
          if (verdict === "news") yield frame;
        }
      } catch (error) {
        if (error instanceof Over) return;
        if (!(error instanceof Cut)) throw error;
        if (!opened && !attempt.signal.aborted && !error.away) ladder.failed(way, Date.now());
        wait = attempt.signal.aborted ? 0 : backoff.cut(Date.now(), Math.random(), error.retryAfterMs);
      } finally {
        clearTimeout(better);
        signal.removeEventListener("abort", stop);
        attempt.abort();
      }
      if (wait > 0 && !signal.aborted) {
        watching.onConnection?.({ state: "waiting", until: Date.now() + wait });
        await pause(wait, signal);
      }
    }
  }
}

function placeOf(watching: Watching): TaskPlace | LinePlace {
  const after = watching.after ?? null;
  const dense = watching.types === undefined;
  if (watching.task === undefined) return new LinePlace(after === null ? null : String(after), dense);
  return new TaskPlace(after === null ? null : Number(after), dense);
}

function wantedOf(watching: Watching, place: TaskPlace | LinePlace): Wanted {
  const ofAll = watching.task === undefined;
  const untilEnd = (watching.untilEnd ?? false) && !ofAll;
  const asked: Record<string, string | number | null> = {
    types: watching.types ?? null,
    ticks: watching.ticks === undefined ? null : Number(watching.ticks),
    until: untilEnd ? "end" : null,
  };
  return {
    path: ofAll ? "/v1/events" : `/v1/tasks/${encodeURIComponent(watching.task ?? "")}/events`,
    ofAll,
    untilEnd,
    after: () => place.after,
    query: (more = {}) => {
      const given = Object.entries({ ...asked, ...more }).filter(([, value]) => value !== null);
      return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
    },
  };
}

/** Wait; at once when the network comes back, somebody looks at the page again, or nobody wants to wait any more. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const target = globalThis as unknown as Partial<EventTarget>;
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      for (const name of ["online", "focus"]) target.removeEventListener?.(name, done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const name of ["online", "focus"]) target.addEventListener?.(name, done);
    signal.addEventListener("abort", done);
  });
}
