// One try of one way: frames until it ends. Every end is thrown, and says what to do.

import { SILENCE_MS, STOP_CODES } from "./rules.ts";
import type { Frame, JournalEvent, Place } from "./rules.ts";

const WAIT_S = 25;
const PAGE = 500;
const UNTIL_END = "until=end";
const TRY_AGAIN: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

/** The connection is gone, or the server asks to come back. */
export class Cut extends Error {
  readonly retryAfterMs: number | null;
  /** Nobody was there, or not ready: that says nothing about the way. */
  readonly away: boolean;

  constructor(why: string, retryAfterMs: number | null = null, away = false) {
    super(why);
    this.retryAfterMs = retryAfterMs;
    this.away = away;
  }
}

/** The stream has ended as it was asked to. */
export class Over extends Error {}

/** What the server has refused, with the code of the API. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly whatToDo: string;
  readonly details: Record<string, unknown>;
  /** The whole error, with its id and suggestions. */
  readonly error: object;
  readonly retryAfterS: number | null;

  constructor(status: number, error: { code?: string; message?: string; what_to_do?: string; details?: object }, retryAfterS: number | null = null) {
    super(error.message ?? `the server answered ${status}`);
    this.status = status;
    this.code = error.code ?? (status === 401 ? "unauthenticated" : "internal");
    this.whatToDo = error.what_to_do ?? "";
    this.details = (error.details ?? {}) as Record<string, unknown>;
    this.error = error;
    this.retryAfterS = retryAfterS;
  }
}

/** Where to ask, and with which token. */
export interface Server {
  url: string;
  token: string | null;
}

/** What is watched, and from where. */
export interface Wanted {
  path: string;
  ofAll: boolean;
  untilEnd: boolean;
  after(): Place | null;
  query(more?: Record<string, string | number | null>): string;
}

export async function ask(
  server: Server, method: string, path: string, body?: unknown, signal?: AbortSignal, more: Record<string, string> = {},
): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", ...more };
  if (server.token !== null) headers.authorization = `Bearer ${server.token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const init: RequestInit = { method, headers, body: body === undefined ? null : JSON.stringify(body) };
  if (signal) init.signal = signal;
  return await fetch(server.url + path, init);
}

export async function refusal(reply: Response): Promise<Refused> {
  const said = (await reply.json().catch(() => ({}))) as { error?: object };
  return new Refused(reply.status, said.error ?? {});
}

/** A refused stream: what can be tried again is a cut. */
async function ended(reply: Response): Promise<Error> {
  const error = await refusal(reply);
  if (!TRY_AGAIN.has(reply.status)) return error;
  const seconds = Number.parseInt(reply.headers.get("retry-after") ?? "", 10);
  return new Cut(error.message, Number.isFinite(seconds) ? seconds * 1000 : null);
}

/** What a close code means; 1000 is ours only with our reason. */
export function closed(code: number, reason: string): Error {
  if (code === 1000 && reason === UNTIL_END) return new Over();
  const word = STOP_CODES[code];
  return word === undefined ? new Cut(reason || `closed with ${code}`) : new Refused(code, { code: word, message: reason });
}

/** A fetch that failed is a cut; everything else is passed on. */
function cutBy(error: unknown): unknown {
  return error instanceof TypeError || (error instanceof DOMException && error.name !== "AbortError") ? new Cut(String(error)) : error;
}

/** Frames as messages. A browser cannot send the token with a WebSocket, so it fetches a ticket first. */
export async function* websocket(server: Server, wanted: Wanted, signal: AbortSignal): AsyncGenerator<Frame> {
  const protocols = ["everstep.v1"];
  if (server.token !== null) protocols.push(`ticket.${await ticket(server, wanted, signal)}`);
  const url = server.url.replace(/^http/, "ws") + wanted.path + wanted.query({ after: wanted.after() });
  const socket = new WebSocket(url, protocols);
  const frames: Frame[] = [];
  let end: Error | null = null;
  let wake: () => void = () => undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  const over = (why: Error): void => {
    end ??= why;
    wake();
  };
  const heard = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => over(new Cut("silence")), SILENCE_MS);
  };
  const leave = (): void => over(new Cut("left"));
  socket.onmessage = (message: MessageEvent): void => {
    heard();
    frames.push(JSON.parse(message.data as string) as Frame);
    wake();
  };
  socket.onclose = (close: CloseEvent): void => over(closed(close.code, close.reason));
  signal.addEventListener("abort", leave);
  heard();
  try {
    while (true) {
      const frame = frames.shift();
      if (frame) yield frame;
      else if (end) throw end;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", leave);
    socket.close();
  }
}

async function ticket(server: Server, wanted: Wanted, signal: AbortSignal): Promise<string> {
  try {
    const reply = await ask(server, "POST", "/v1/tickets", { path: wanted.path }, signal);
    if (!reply.ok) throw await ended(reply);
    return ((await reply.json()) as { ticket: string }).ticket;
  } catch (error) {
    const why = cutBy(error);
    throw why instanceof Cut ? new Cut(why.message, why.retryAfterMs, true) : why;
  }
}

/** Frames as server-sent events, read by fetch: EventSource cannot send the token. */
export async function* serverSent(server: Server, wanted: Wanted, signal: AbortSignal): AsyncGenerator<Frame> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (server.token !== null) headers.authorization = `Bearer ${server.token}`;
  const after = wanted.after();
  if (after !== null) headers["last-event-id"] = String(after);
  const cut = new AbortController();
  const leave = (): void => cut.abort();
  signal.addEventListener("abort", leave);
  let silence = setTimeout(leave, SILENCE_MS);
  try {
    const reply = await fetch(server.url + wanted.path + wanted.query(), { headers, signal: cut.signal });
    if (!reply.ok || !reply.body) throw await ended(reply);
    let rest = "";
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    while (true) {
      const { done, value } = await reader.read();
      if (done) throw new Cut("the server ended the stream");
      clearTimeout(silence);
      silence = setTimeout(leave, SILENCE_MS);
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (!line.startsWith("data: ")) continue;
        const frame = JSON.parse(line.slice(6)) as Frame;
        if (frame.type === "bye" && frame.reason === UNTIL_END) throw new Over();
        yield frame;
      }
    }
  } catch (error) {
    if (cut.signal.aborted) throw new Cut(signal.aborted ? "left" : "silence");
    throw cutBy(error);
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", leave);
    cut.abort();
  }
}

interface Page {
  events: JournalEvent[];
  next_after: Place;
  live: boolean;
}

/** Pages, one after the other, told as frames. */
export async function* poll(server: Server, wanted: Wanted, signal: AbortSignal): AsyncGenerator<Frame> {
  let live = false;
  try {
    while (true) {
      if (wanted.after() === null && !wanted.ofAll) yield await snapshot(server, wanted, false, signal);
      const more = { after: wanted.after(), limit: PAGE, wait: WAIT_S, ticks: null, until: null };
      const reply = await ask(server, "GET", wanted.path + wanted.query(more), undefined, signal);
      if (reply.status === 410) {
        const { details } = await refusal(reply);
        yield { type: "resync_required", ...details };
        if (!wanted.ofAll) yield await snapshot(server, wanted, true, signal);
        continue;
      }
      if (!reply.ok) throw await ended(reply);
      const page = (await reply.json()) as Page;
      for (const event of page.events) yield { type: "event", event };
      const place = typeof page.next_after === "string" ? { cursor: page.next_after } : { seq: page.next_after };
      yield { type: live || !page.live ? "heartbeat" : "live", ...place };
      live ||= page.live;
      if (wanted.untilEnd && page.live) {
        const told = await snapshot(server, wanted, false, signal);
        if (ENDED.has((told.task as { status: string }).status) && told.seq === wanted.after()) throw new Over();
      }
    }
  } catch (error) {
    throw signal.aborted ? new Cut("left") : cutBy(error);
  }
}

async function snapshot(server: Server, wanted: Wanted, reset: boolean, signal: AbortSignal): Promise<Frame> {
  const reply = await ask(server, "GET", wanted.path.replace(/\/events$/, ""), undefined, signal);
  if (!reply.ok) throw await ended(reply);
  const task = (await reply.json()) as { seq: number };
  return { type: "snapshot", seq: task.seq, reset, task };
}
