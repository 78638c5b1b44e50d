// What a journal means for a page: fold(view, event). Pure; unknown events change nothing but the place.
// The server's own is src/everstep/domain/fold.py; statuses and phases here are held against it by a test.

import type { JournalEvent } from "../client/rules.ts";

export type SegmentKind = "waiting" | "executing" | "retry" | "paused";

export interface Segment {
  kind: SegmentKind;
  from: number;
  to: number | null;
  attempt: number;
  /** How an attempt ended; null while it goes on. */
  end: "succeeded" | "failed" | "timed_out" | "killed" | "abandoned" | null;
  generation: number;
}

export interface StepView {
  id: string;
  /** The step whose item this is. */
  parent: string | null;
  title: string | null;
  tool: string | null;
  status: string;
  phase: string | null;
  startedAt: number | null;
  endedAt: number | null;
  segments: Segment[];
  attempts: number;
  retryAt: number | null;
  retries: number;
  retriesMax: number | null;
  itemsTotal: number | null;
  items: string[];
  counts: { completed: number; failed: number; skipped: number };
  via: string | null;
  /** Who answered the last question about it. */
  by: string | null;
  fallback: string | null;
  degraded: boolean;
  error: string | null;
  skip: string | null;
  takes: string[];
}

export interface View {
  seq: number;
  status: string;
  generation: number;
  startedAt: number | null;
  endedAt: number | null;
  steps: Map<string, StepView>;
  /** Ids in the order of the plan, without items. */
  order: string[];
  finals: Set<string>;
  recoveries: number;
  /** The worker that was lost last. */
  lost: string | null;
  /** From which step each generation but the first began. */
  begun: Map<number, string>;
  /** Open pauses and what they are about. */
  pauses: Map<string, string>;
}

export const empty = (): View => ({
  seq: 0, status: "queued", generation: 1, startedAt: null, endedAt: null, steps: new Map(), order: [], finals: new Set(), recoveries: 0, lost: null, begun: new Map(), pauses: new Map(),
});

interface PlanStep {
  id: string;
  title?: string;
  tool?: string;
  with?: unknown;
  needs?: string[];
  for_each?: unknown;
  when?: unknown;
}

interface Plan {
  steps?: PlanStep[];
  finally?: PlanStep[];
}

const ITEM = /^(.*)\[(\d+|before|call|after)\]$/;

export function newStep(id: string, more: Partial<StepView> = {}): StepView {
  return {
    id, parent: ITEM.exec(id)?.[1] ?? null, title: null, tool: null, status: "pending", phase: null, startedAt: null, endedAt: null, segments: [],
    attempts: 0, retryAt: null, retries: 0, retriesMax: null, itemsTotal: null, items: [], counts: { completed: 0, failed: 0, skipped: 0 },
    via: null, by: null, fallback: null, degraded: false, error: null, skip: null, takes: [], ...more,
  };
}

/** Steps whose outcome a step's arguments name. */
export function takesFrom(step: PlanStep, known: ReadonlySet<string>): string[] {
  const said = JSON.stringify([step.with ?? null, step.for_each ?? null, step.when ?? null]);
  const named = new Set(step.needs ?? []);
  for (const [, inside] of said.matchAll(/\$\{([^}]*)\}/g)) {
    for (const [word] of (inside ?? "").matchAll(/[A-Za-z_][A-Za-z0-9_-]*/g)) if (known.has(word)) named.add(word);
  }
  named.delete(step.id);
  return [...named];
}

/** Put a plan's steps in; what has begun stays. */
export function planned(view: View, plan: Plan): void {
  const all = [...(plan.steps ?? []), ...(plan.finally ?? [])];
  const known = new Set(all.map((step) => step.id));
  view.order = all.map((step) => step.id);
  view.finals = new Set((plan.finally ?? []).map((step) => step.id));
  for (const step of all) {
    const there = view.steps.get(step.id) ?? newStep(step.id);
    there.title = there.title ?? step.title ?? null;
    there.tool = step.tool ?? null;
    there.takes = takesFrom(step, known);
    view.steps.set(step.id, there);
  }
}

function stepOf(view: View, id: string): StepView {
  let step = view.steps.get(id);
  if (step === undefined) {
    step = newStep(id);
    view.steps.set(id, step);
    if (step.parent !== null) stepOf(view, step.parent).items.push(id);
    else view.order.push(id);
  }
  return step;
}

function close(step: StepView, at: number, end: Segment["end"] = null): void {
  const last = step.segments.at(-1);
  if (last && last.to === null) {
    last.to = at;
    if (last.kind === "executing") last.end = end;
  }
}

function open(view: View, step: StepView, kind: SegmentKind, at: number, attempt = step.attempts): void {
  close(step, at);
  step.segments.push({ kind, from: at, to: null, attempt, end: null, generation: view.generation });
}

function end(view: View, step: StepView, status: "completed" | "failed" | "skipped", at: number): void {
  close(step, at, status === "completed" ? "succeeded" : "failed");
  if (step.parent !== null && step.status !== status) stepOf(view, step.parent).counts[status] += 1;
  step.status = status;
  step.phase = "done";
  step.endedAt = at;
  step.retryAt = null;
}

/** Begin again: its outcome counts no more, its segments stay. */
function reset(view: View, id: string): void {
  const step = stepOf(view, id);
  const fresh = newStep(id);
  Object.assign(step, fresh, { title: step.title, tool: step.tool, takes: step.takes, segments: step.segments, attempts: step.attempts, parent: step.parent });
}

const ENDS: Readonly<Record<string, Segment["end"]>> = {
  "attempt.failed": "failed", "attempt.timed_out": "timed_out", "attempt.killed": "killed", "attempt.abandoned": "abandoned",
};

type Data = Record<string, unknown>;
type Change = (view: View, data: Data, step: StepView | null, at: number, type: string) => void;

const message = (error: unknown): string | null => (error as { message?: string } | null)?.message ?? null;
const texts = (list: unknown): string[] => (Array.isArray(list) ? (list as string[]) : []);

const move = (status: string): Change => (view) => {
  view.status = status;
};

const ended = (status: string, skip: string | null): Change => (view, data, _step, at) => {
  for (const id of texts(data.skipped)) {
    const step = stepOf(view, id);
    end(view, step, "skipped", at);
    step.skip = skip;
  }
  view.status = status;
  view.endedAt = at;
};

/** Answers after which a step is no longer paused, whatever comes of it; after others the next event says what becomes of it. */
const AGAIN: ReadonlySet<string> = new Set(["supply_arguments", "retry", "retry_with", "not_happened", "answer", "approve", "edit", "reject"]);
const FOR_PRODUCER: ReadonlySet<string> = new Set(["run_producer", "supply_output"]);

const unpaused = (view: View, data: Data, step: StepView | null, at: number, answer: string | null): void => {
  const type = view.pauses.get(String(data.pause));
  view.pauses.delete(String(data.pause));
  if (step === null) return;
  const last = step.segments.at(-1);
  if (last?.kind === "paused" && last.to === null) last.to = at;
  const goesOn = answer === null || AGAIN.has(answer) || (type === "unresolvedDependency" && FOR_PRODUCER.has(answer));
  if (step.status === "paused" && goesOn) {
    step.status = "running";
    step.phase = "validating";
  }
};

const CHANGES: Readonly<Record<string, Change>> = {
  "task.created": (view, data) => planned(view, (data.plan ?? {}) as Plan),
  "task.started": (view, _data, _step, at) => {
    if (view.status !== "cancelling") view.status = "running";
    view.startedAt ??= at;
  },
  "task.pausing": move("pausing"),
  "task.paused": move("paused"),
  "task.resumed": (view, data) => void (view.status = String(data.to ?? "running")),
  "task.recovered": (view, data) => {
    if (view.status !== "cancelling") view.status = "stalled";
    view.recoveries = Number(data.recoveries ?? 0);
    view.lost = (data.worker as string | null) ?? null;
  },
  "task.cancelling": move("cancelling"),
  "task.cancelled": ended("cancelled", "task_cancelled"),
  "task.completed": ended("completed", null),
  "task.failed": ended("failed", "task_failed"),
  "task.reopened": (view, data) => {
    view.generation = Number(data.generation ?? view.generation + 1);
    view.begun.set(view.generation, String(data.from_step ?? ""));
    view.status = "queued";
    view.endedAt = null;
    for (const id of texts(data.superseded)) if (view.steps.has(id)) reset(view, id);
  },
  "plan.revised": (view, data) => {
    for (const change of (data.diff ?? []) as { op: string; id: string; after?: string | null; step?: PlanStep | null }[]) {
      if (change.op === "append" && !view.steps.has(change.id)) {
        const place = change.after ? view.order.indexOf(change.after) + 1 : view.order.length - view.finals.size;
        view.order.splice(place, 0, change.id);
        view.steps.set(change.id, newStep(change.id));
      }
      const step = view.steps.get(change.id);
      if (step && change.step) Object.assign(step, { title: change.step.title ?? null, tool: change.step.tool ?? null, takes: takesFrom(change.step, new Set(view.order)) });
    }
  },
  "step.started": (view, data, step, at) => {
    if (!step) return;
    step.status = "running";
    step.phase = "validating";
    step.startedAt ??= at;
    step.title = (data.title as string | null) ?? step.title;
    const items = data.items as { value?: unknown[]; count?: number } | null;
    if (items) step.itemsTotal = Array.isArray(items.value) ? items.value.length : (items.count ?? null);
    open(view, step, "waiting", at);
  },
  "step.waiting": (view, _data, step, at) => {
    if (!step) return;
    if (step.status === "pending") step.status = "running";
    step.phase = "waiting_slot";
    const last = step.segments.at(-1);
    if (last?.kind !== "executing" || last.to !== null) open(view, step, "waiting", at);
  },
  "attempt.started": (view, data, step, at) => {
    if (!step) return;
    step.status = "running";
    step.phase = "executing";
    step.attempts = Number(data.attempt ?? step.attempts + 1);
    step.startedAt ??= at;
    step.retryAt = null;
    open(view, step, "executing", at, step.attempts);
  },
  "step.retry_scheduled": (view, data, step, at) => {
    if (!step) return;
    step.phase = "retry_wait";
    const retry = data.retry as { count?: number; max?: number | null; next_at?: string | null } | null;
    step.retries = retry?.count ?? step.retries;
    step.retriesMax = retry?.max ?? step.retriesMax;
    step.retryAt = retry?.next_at ? Date.parse(retry.next_at) : null;
    step.error = message(data.error);
    step.degraded = data.degraded !== null && data.degraded !== undefined;
    open(view, step, "retry", at);
  },
  "step.fallback": (_view, data, step) => {
    if (!step) return;
    step.phase = "validating";
    step.fallback = String(data.tool_used ?? "");
  },
  "step.completed": (view, data, step, at) => {
    if (!step) return;
    step.startedAt ??= at;
    end(view, step, "completed", at);
    step.via = (data.via as string | null) ?? null;
    step.error = null;
  },
  "step.failed": (view, data, step, at) => {
    if (!step) return;
    step.startedAt ??= at;
    end(view, step, "failed", at);
    step.error = message(data.error);
  },
  "step.skipped": (view, data, step, at) => {
    if (!step) return;
    end(view, step, "skipped", at);
    step.skip = String(data.reason ?? "");
  },
  "pause.opened": (view, data, step, at) => {
    view.pauses.set(String(data.id), String((data.reason as { type?: string } | null)?.type));
    if (!step || data.step === null) return;
    step.status = "paused";
    if (data.call) step.phase = "awaiting_approval";
    open(view, step, "paused", at);
  },
  "pause.answered": (view, data, step, at) => unpaused(view, data, step, at, String(data.answer)),
  "pause.expired": (view, data, step, at) => unpaused(view, data, step, at, String(data.action)),
  "pause.withdrawn": (view, data, step, at) => unpaused(view, data, step, at, null),
};

/** One event more. What came before is dropped, what comes after a hole is refused. */
export function fold(view: View, event: JournalEvent): boolean {
  if (event.seq !== view.seq + 1) return false;
  view.seq = event.seq;
  const at = Date.parse(event.at);
  const end = ENDS[event.type];
  if (end !== undefined && event.step !== null) {
    const step = stepOf(view, event.step);
    close(step, at, end);
    step.phase = "validating";
    step.error = message(event.data.error);
    return true;
  }
  const change = CHANGES[event.type];
  const step = change === undefined || event.step === null ? null : stepOf(view, event.step);
  if (change) change(view, event.data, step, at, event.type);
  if (step !== null && event.type === "pause.answered") step.by = (event.actor as { id?: string } | undefined)?.id ?? null;
  return true;
}
