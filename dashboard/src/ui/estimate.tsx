// The bar and its words. It never goes back, and it is full only when the task has ended.

import { useRef } from "preact/hooks";
import type { Task } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { ticks } from "../data/live.ts";
import { Steady, range, say } from "../logic/estimate.ts";
import type { Said } from "../logic/estimate.ts";
import { TERMINAL, ofTask } from "../logic/status.ts";
import { instant, length } from "../logic/times.ts";

const furthest = new Map<string, number>();
/** What was first expected of a task that this page has seen running, from its beginning to its end. */
const expected = new Map<string, readonly [number, number]>();

function remember(task: Task, estimate: Task["estimate"]): void {
  const began = instant(task.started_at);
  const key = `${task.id}/${task.generation}`;
  if (expected.has(key) || began === null || !estimate || estimate.waiting_on !== null || estimate.p10 === null || estimate.p90 === null) return;
  const elapsed = Math.max(0, ((instant(estimate.as_of) ?? began) - began) / 1000);
  expected.set(key, [elapsed + estimate.p10, elapsed + estimate.p90]);
  if (expected.size > 1000) expected.delete(expected.keys().next().value ?? "");
}

/** How far it is drawn: at most almost full before the end, and never less than before in the same generation. */
export function drawn(task: Task, fraction: number): number {
  if (task.status === "completed") return 1;
  const key = `${task.id}/${task.generation}`;
  const most = Math.min(TERMINAL.has(task.status) ? 1 : 0.985, Math.max(furthest.get(key) ?? 0, fraction));
  furthest.set(key, most);
  if (furthest.size > 5000) furthest.delete(furthest.keys().next().value ?? "");
  return most;
}

export function useEstimate(task: Task): Said & { fraction: number; done: number; total: number } {
  const steady = useRef(new Steady());
  const tick = TERMINAL.has(task.status) ? undefined : ticks.value.get(task.id);
  const progress = tick?.progress && tick.progress.done >= task.progress.done ? tick.progress : task.progress;
  const estimate = newest(tick?.estimate ?? null, task.estimate);
  const fraction = drawn(task, progress.fraction ?? 0);
  const { done, total } = progress;
  if (TERMINAL.has(task.status)) {
    const [from, to] = [instant(task.started_at), instant(task.ended_at)];
    const first = expected.get(`${task.id}/${task.generation}`);
    const was = first ? `, estimate was ${range(...first)}` : "";
    const took = from !== null && to !== null ? `took ${length(to - from)}` : "";
    return { text: took && took + was, short: took, tone: "usual", fraction, done, total };
  }
  remember(task, estimate);
  const asOf = instant(estimate?.as_of) ?? now.value;
  const elapsed = estimate?.waiting_on ? 0 : Math.max(0, (now.value - asOf) / 1000);
  const said = say(estimate, done, total, elapsed, steady.current);
  return { ...said, short: estimate === null ? "" : said.short, fraction, done, total }; // a list tells no estimate before the first tick
}

function newest(a: Task["estimate"], b: Task["estimate"]): Task["estimate"] {
  if (a === null || b === null) return a ?? b;
  return a.as_of > b.as_of ? a : b;
}

export function EstimateBar({ task, said }: { task: Task; said: ReturnType<typeof useEstimate> }) {
  const { mark } = ofTask(task);
  const tone = TERMINAL.has(task.status) || task.status === "queued" ? "" : said.tone;
  return (
    <div class={`bar s-${mark} ${tone === "none" && said.fraction > 0 ? "" : tone}`} role="progressbar" aria-label="Progress" aria-valuemin={0} aria-valuemax={100}
      aria-valuenow={Math.round(said.fraction * 100)} aria-valuetext={`${said.done} of ${said.total} steps${said.text ? `, ${said.text}` : ""}`}>
      <i style={{ width: `${said.fraction * 100}%` }} />
    </div>
  );
}
