// What is left, in words (the server's estimate, never ours). It counts down between two updates and never up.

import { age, length } from "./times.ts";

export interface Estimate {
  p10: number | null;
  p50: number | null;
  p90: number | null;
  basis: string | null;
  n: number;
  waiting_on: string | null;
  as_of: string;
}

const DEADBAND = 0.15; // words change only when the middle leaves what is shown by so much

function halves(seconds: number): string {
  const n = Math.round(seconds / 30);
  return `${Math.floor(n / 2) || ""}${n % 2 ? "½" : ""} min`;
}

/** Seconds as somebody would say them. */
export function rough(seconds: number): string {
  if (seconds < 10) return "a few seconds";
  if (seconds < 90) return `${Math.round(seconds / 5) * 5} s`;
  if (seconds < 600) return halves(seconds);
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

/** A range with one unit where both ends have the same. */
export function range(low: number, high: number): string {
  const to = rough(high);
  const from = low >= 30 && low < 90 && to.endsWith(" min") ? halves(low) : rough(low);
  if (from === to) return to;
  const unit = / (s|min)$/.exec(to)?.[0];
  if (unit !== undefined && from.endsWith(unit)) return `${from.slice(0, -unit.length)}–${to}`;
  return low < 10 ? `up to ${to}` : `${from} to ${to}`;
}

/** The same number until the real one has gone far enough away from it: no word flickers. */
export class Steady {
  private shown: number | null = null;

  next(p50: number): number {
    if (this.shown === null || Math.abs(p50 - this.shown) > DEADBAND * this.shown) this.shown = p50;
    return this.shown;
  }
}

export interface Said {
  text: string;
  /** The same where there is little room: without the count and without what it is founded on. */
  short: string;
  /** The bar has no length, is hatched, or stands still. */
  tone: "none" | "usual" | "late" | "frozen";
}

const WAITS: Readonly<Record<string, string>> = {
  worker: "waiting for a worker", slot: "waiting for a free slot", rate: "waiting for the rate limit", breaker: "waiting for a breaker",
  retry: "waiting to try again", time: "waiting until its time", event: "waiting for a signal", child: "waiting for another task",
  halt: "everything is halted", recovery: "being recovered",
};

/** In a list, where the count stands beside it: what keeps a task, and for how long; null: nothing does. */
export function because(waits: { kind: string; until: string | null } | null, now: number): string | null {
  if (waits === null || waits.kind === "person") return null;
  const left = waits.until === null ? 0 : Date.parse(waits.until) - now;
  if (waits.kind === "retry" && left > 0) return `next try in ${age(left)}`;
  return (WAITS[waits.kind] ?? `waiting for ${waits.kind}`) + (left > 0 ? ` · ${age(left)}` : "");
}

/** Words for what is left. `leftS`: p50 counted down; `elapsedS` since the estimate was made. */
export function say(estimate: Estimate | null, done: number, total: number, elapsedS: number, steady: Steady): Said {
  if (estimate === null || estimate.p50 === null || estimate.p10 === null || estimate.p90 === null) {
    const waits = estimate?.waiting_on ?? null;
    const count = `${done} of ${total} steps done`;
    const said = waits === "person" ? "waiting for you" : waits === null ? "no estimate yet" : (WAITS[waits] ?? `waiting for ${waits}`);
    return { text: `${said}; ${count}`, short: said, tone: waits === null ? "none" : "frozen" };
  }
  const { p10, p50, p90, waiting_on: waits } = estimate;
  if (waits !== null) {
    const said = waits === "person" ? "waiting for you" : (WAITS[waits] ?? `waiting for ${waits}`);
    return { text: `${said} · ${length(p50 * 1000)} of work after that`, short: said, tone: "frozen" };
  }
  if (elapsedS > p90) return { text: `longer than usual (usually under ${rough(p90)})`, short: "longer than usual", tone: "late" };
  const left = steady.next(Math.max(0, p50 - elapsedS));
  const about = left < 10 ? "a few seconds left" : `about ${rough(left)} left`;
  const likely = p90 - elapsedS < 10 ? "" : `, likely ${range(Math.max(0, p10 - elapsedS), p90 - elapsedS)}`;
  const guess = estimate.basis === "prior" ? " · first guess" : estimate.n > 0 ? ` · from ${estimate.n} ${estimate.n === 1 ? "task" : "tasks"}` : "";
  return { text: about + likely + guess, short: about + likely, tone: "usual" };
}
