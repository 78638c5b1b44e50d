// One task, followed: the Task itself, read again when something has happened, and the fold of its journal.

import { signal } from "@preact/signals";
import { Refused } from "../client/client.ts";
import type { Frame, JournalEvent } from "../client/client.ts";
import { empty, fold, newStep } from "../logic/fold.ts";
import type { View } from "../logic/fold.ts";
import { instant } from "../logic/times.ts";
import type { Step, Task } from "./api.ts";
import { ticks } from "./live.ts";
import type { Tick } from "./live.ts";
import { resource } from "./resource.ts";
import { client, get, signedOut } from "./session.ts";

/** A line of the journal; what the event holds is read when somebody looks at it. */
export interface Entry {
  seq: number;
  at: string;
  type: string;
  step: string | null;
  actor: string;
}

const PAINT_MS = 100;
const HIDDEN_PAINT_MS = 1000;
const LARGE = 200; // of so many steps and items a task is read again rarely: ticks tell how far it is
const LARGE_MS = 3000;

export class TaskData {
  readonly id: string;
  readonly task;
  /** Changes whenever there is something new to paint. */
  readonly version = signal(0);
  /** The journal has been read to its end. */
  readonly caughtUp = signal(false);
  view: View = empty();
  journal: Entry[] = [];
  /** Text that tools stream while they run; not recorded. */
  readonly streamed = signal<ReadonlyMap<string, string>>(new Map());
  readonly gone = signal<Error | null>(null);
  private known: { task: Task | null; steps: Map<string, Step> } = { task: null, steps: new Map() };
  private readonly stopping = new AbortController();
  private reread = 0;
  private painting: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.id = id;
    this.task = resource(() => get<Task>(`/v1/tasks/${encodeURIComponent(id)}`), 350);
  }

  /** One that is over, or was written down. */
  static of(task: Task, events: readonly JournalEvent[]): TaskData {
    const data = new TaskData(task.id);
    data.task.value.value = task;
    for (const event of events) {
      fold(data.view, event);
      data.note(event);
    }
    data.caughtUp.value = true;
    return data;
  }

  start(): void {
    void this.task.refresh().then(() => {
      const found = this.task.value.value;
      if (found) this.seed(found);
      if (this.task.error.value) this.gone.value = this.task.error.value;
      else void this.follow();
    });
  }

  stop(): void {
    this.stopping.abort();
    this.task.stop();
    clearTimeout(this.painting);
  }

  /** What a step is called: as the server says, else as the plan does. */
  step(id: string): Step | undefined {
    const task = this.task.value.value;
    if (task !== this.known.task) this.known = { task, steps: new Map(task?.steps?.map((step) => [step.id, step])) };
    return this.known.steps.get(id);
  }

  /** Something to look at before the journal is here. */
  private seed(task: Task): void {
    for (const step of task.steps ?? []) {
      this.view.order.push(step.id);
      this.view.steps.set(step.id, newStep(step.id, {
        title: step.title, tool: step.tool, status: step.status, phase: step.phase, startedAt: instant(step.started_at), endedAt: instant(step.ended_at),
        itemsTotal: step.counts?.total ?? null,
      }));
    }
    this.view.status = task.status;
    this.view.startedAt = instant(task.started_at);
    this.view.endedAt = instant(task.ended_at);
    this.version.value += 1;
  }

  private async follow(): Promise<void> {
    const fresh = empty();
    let view = fresh;
    this.journal = [];
    try {
      for await (const frame of client().frames({ task: this.id, after: 0, signal: this.stopping.signal })) {
        if (frame.type === "event" && frame.event) {
          fold(view, frame.event);
          this.note(frame.event);
          if (this.caughtUp.value) this.changed(frame.event);
          else if (this.journal.length % 2000 === 0) this.paint();
        } else if (frame.type === "live") {
          this.view = view;
          this.caughtUp.value = true;
          if (view.seq !== this.task.value.peek()?.seq) this.task.stale();
          this.paint();
        } else if (frame.type === "snapshot") {
          view = empty();
          this.view = view;
          this.journal = [];
          this.seed(frame.task as Task);
          view.seq = frame.seq ?? 0;
          this.task.value.value = frame.task as Task;
        } else this.volatile(frame);
      }
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      if (error instanceof Refused && error.status % 1000 === 401) {
        signedOut.value = true;
        const back = signedOut.subscribe((out) => {
          if (out) return;
          setTimeout(() => back());
          if (!this.stopping.signal.aborted) void this.follow();
        });
      } else this.gone.value = error as Error;
    }
  }

  private note(event: JournalEvent): void {
    const actor = event.actor as { kind: string; id: string } | undefined;
    this.journal.push({ seq: event.seq, at: event.at, type: event.type, step: event.step, actor: actor ? (actor.kind === "system" ? "engine" : actor.id) : "" });
  }

  private changed(event: JournalEvent): void {
    if (event.step !== null && this.streamed.value.has(event.step)) {
      const rest = new Map(this.streamed.value);
      rest.delete(event.step);
      this.streamed.value = rest;
    }
    const small = this.view.steps.size < LARGE;
    if (small || event.step === null || event.type.startsWith("pause.")) this.task.stale();
    else if (Date.now() - this.reread > LARGE_MS) {
      this.reread = Date.now();
      this.task.stale();
    }
    this.paint();
  }

  private volatile(frame: Frame): void {
    if (frame.type === "tick") ticks.value = new Map([...ticks.value, [this.id, frame as unknown as Tick]]);
    if (frame.type === "output") {
      const step = frame.step as string;
      const before = frame.n === 1 ? "" : (this.streamed.value.get(step) ?? "");
      this.streamed.value = new Map([...this.streamed.value, [step, (before + String(frame.text)).slice(-64_000)]]);
    }
  }

  private paint(): void {
    if (this.painting !== undefined) return;
    this.painting = setTimeout(() => {
      this.painting = undefined;
      this.version.value += 1;
    }, document.hidden ? HIDDEN_PAINT_MS : PAINT_MS);
  }
}
