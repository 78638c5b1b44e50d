// The line of all tasks: one stream for the whole page. Whoever shows something listens here and reads it again.

import { effect, signal } from "@preact/signals";
import type { Frame, JournalEvent } from "../client/client.ts";
import { Refused } from "../client/client.ts";
import type { Progress } from "./api.ts";
import type { Estimate } from "../logic/estimate.ts";
import { firstVersion, heard, servedVersion } from "./connection.ts";
import { client, signedOut, token } from "./session.ts";

export interface Tick {
  progress: Progress;
  estimate: Estimate | null;
}

/** What running tasks said last; volatile. */
export const ticks = signal<ReadonlyMap<string, Tick>>(new Map());

type Heard = (event: JournalEvent) => void;
type Noticed = (topic: string) => void;
const listeners = new Set<Heard>();
const noticers = new Set<Noticed>();
const returns = new Set<() => void>();

/** Call back for every event of every task; the result ends it. */
export function onEvent(call: Heard): () => void {
  listeners.add(call);
  return () => void listeners.delete(call);
}

export function onNotice(call: Noticed): () => void {
  noticers.add(call);
  return () => void noticers.delete(call);
}

/** Call back whenever the line is open (again): time to read anew what was shown. */
export function onReturn(call: () => void): () => void {
  returns.add(call);
  return () => void returns.delete(call);
}

const waiting = new Map<string, Tick>();
setInterval(() => {
  if (waiting.size === 0) return;
  ticks.value = new Map([...ticks.value, ...waiting]);
  waiting.clear();
}, 250);

function take(frame: Frame): void {
  switch (frame.type) {
    case "hello":
      servedVersion.value = frame.server as string;
      firstVersion.value ??= servedVersion.value;
      break;
    case "live":
      for (const call of returns) call();
      break;
    case "event":
      if (frame.event) for (const call of listeners) call(frame.event);
      break;
    case "tick":
      waiting.set(frame.task as string, frame as unknown as Tick);
      break;
    case "notice":
      for (const call of noticers) call(frame.topic as string);
      break;
    default:
  }
}

async function follow(stop: AbortSignal): Promise<void> {
  try {
    for await (const frame of client().frames({ ticks: true, signal: stop, onConnection: heard })) take(frame);
  } catch (error) {
    if (stop.aborted) return;
    if (error instanceof Refused && error.status % 1000 === 401) signedOut.value = true;
    else {
      heard({ state: "waiting", until: Date.now() + 5000 });
      setTimeout(() => void (stop.aborted || follow(stop)), 5000);
    }
  }
}

let stop: AbortController | null = null;
effect(() => {
  stop?.abort();
  if (token.value === null || signedOut.value) return;
  const mine = (stop = new AbortController()).signal;
  setTimeout(() => void (mine.aborted || follow(mine))); // after what the page shows
});
