// What a step was given and gave, what it said, how often it was tried, and what the journal holds.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Artifact } from "../data/api.gen.ts";
import type { ApiError, Attempt, JsonObject, Pause, Step, Task } from "../data/api.ts";
import { resource } from "../data/resource.ts";
import { get, request } from "../data/session.ts";
import type { TaskData } from "../data/task.ts";
import { TERMINAL, ofStep } from "../logic/status.ts";
import { bytes, shortId, visible } from "../logic/text.ts";
import { clock, instant, length } from "../logic/times.ts";
import { refusal } from "./actions.tsx";
import type { Act } from "./actions.tsx";
import { Decision } from "./decision.tsx";
import { JsonTree, PayloadView } from "./json.tsx";
import { Journal } from "./journal.tsx";
import { Logs, Streamed } from "./logs.tsx";
import { Glyph, StatusMark } from "./marks.tsx";
import { ErrorCard, Meter, Panel, Said, To } from "./parts.tsx";

export const TABS = ["input", "output", "logs", "attempts", "journal"] as const;
export type Tab = (typeof TABS)[number] | "decide";

interface InspectorProps {
  data: TaskData;
  task: Task;
  step: string | null;
  tab: Tab;
  pause: Pause | null;
  /** The line of the log that the address names. */
  line?: number | null;
  onLine?: (line: number) => void;
  onTab: (tab: Tab) => void;
  onClose: () => void;
  /** Without it nothing can be done, only looked at. */
  onAct?: (act: Act) => void;
}

export function Inspector({ data, task, step, tab, pause, line = null, onLine = () => undefined, onTab, onClose, onAct }: InspectorProps) {
  void data.version.value;
  const seen = step === null ? null : data.view.steps.get(step);
  const stamp = `${step}/${seen?.status}/${seen?.phase}/${seen?.attempts}/${data.view.generation}`;
  const read = useMemo(() => (step === null ? null : resource(() => get<Step>(`/v1/tasks/${task.id}/steps/${encodeURIComponent(step)}`))), [step, task.id]);
  useEffect(() => {
    void read?.refresh();
  }, [stamp]);
  useEffect(() => () => read?.stop(), [read]);
  const found = read?.value.value ?? null;
  const tabs: Tab[] = pause ? ["decide", ...TABS] : [...TABS];
  const names: Record<Tab, string> = { decide: "Decide", input: "Input", output: "Output", logs: "Logs", attempts: "Attempts", journal: "Journal" };
  const move = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    if (next) {
      onTab(next);
      (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`#tab-${next}`)?.focus();
    }
  };
  return (
    <aside class="inspector" aria-label="Inspector">
      <header class="inspector-head">
        {step === null ? <h2 class="grow">The whole task</h2> : (
          <>
            <h2 class="grow cut"><Said text={found?.title ?? seen?.title ?? step} /> <span class="muted mono small">{visible(step)}</span></h2>
            {seen && <StatusMark shown={ofStep(seen)} />}{seen?.phase && seen.phase !== "done" && <span class="tag">{seen.phase.replace("_", " ")}</span>}
            <button type="button" class="plain tiny" onClick={onClose} aria-label="Close the step">×</button>
          </>
        )}
      </header>
      <div class="tabs" role="tablist" aria-label="Parts" onKeyDown={move}>
        {tabs.map((one) => <button type="button" role="tab" key={one} id={`tab-${one}`} aria-selected={tab === one} aria-controls="tab-panel" tabIndex={tab === one ? 0 : -1} onClick={() => onTab(one)}>{names[one]}</button>)}
      </div>
      <div class="tab-panel" role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        <Panel name={names[tab]} key={`${tab}/${step}`}>
          {read?.error.value && tab !== "journal" && tab !== "logs" && <ErrorCard error={read.error.value} />}
          {tab === "decide" && pause && <Decision pause={pause} />}
          {tab === "input" && (step === null ? <OfTask task={task} /> : found && <Input task={task.id} step={found} />)}
          {tab === "output" && (step === null ? <Outcome task={task} /> : found && <Output task={task.id} step={found} streamed={data.streamed.value.get(step)} />)}
          {tab === "logs" && <Logs task={task.id} step={step} line={line} live={onAct !== undefined && !TERMINAL.has(task.status)} streamed={step === null ? undefined : data.streamed.value.get(step)} onLine={onLine} />}
          {tab === "attempts" && (step === null ? <p class="muted">Choose a step to see how often it was tried.</p> : found && <Attempts task={task.id} step={found} />)}
          {tab === "journal" && <Journal data={data} step={step} />}
        </Panel>
      </div>
      {step !== null && tab !== "decide" && onAct && (
        <footer class="inspector-foot">
          <Do task={task} action="retry" onDo={() => onAct({ name: "retry", step })}>Retry from here…</Do>
          <Do task={task} action="fork" onDo={() => onAct({ name: "fork", step })}>Fork…</Do>
          {(seen?.status === "pending" || seen?.status === "paused") && seen.parent === null && <Do task={task} action="patch" onDo={() => onAct({ name: "skip", step })}>Skip…</Do>}
        </footer>
      )}
    </aside>
  );
}

function Do({ task, action, onDo, children }: { task: Task; action: string; onDo: () => void; children: string }) {
  const why = refusal(task, action);
  return <button type="button" class="tiny" disabled={why !== null} title={why ?? ""} onClick={onDo}>{children}</button>;
}

const SAID: Readonly<Record<string, (n: number) => string>> = { wall_time: (n) => length(n * 1000), cpu_time: (n) => length(n * 1000), memory: bytes, output: bytes, disk: bytes };

function OfTask({ task }: { task: Task }) {
  const limits = Object.entries(task.limits ?? {}).filter(([, level]) => level.used > 0);
  return (
    <div class="stack">
      <section><h3>Inputs</h3><JsonTree value={task.inputs ?? null} root="inputs" /></section>
      {limits.length > 0 && <section><h3>Used so far</h3><div class="meters">{limits.map(([name, level]) => <Meter key={name} label={name.replace("_", " ")} used={level.used} max={level.max} {...(SAID[name] ? { say: SAID[name] } : {})} />)}</div></section>}
      {task.labels && Object.keys(task.labels).length > 0 && <section><h3>Labels</h3><p>{Object.entries(task.labels).map(([name, value]) => <span key={name} class="tag">{visible(`${name}: ${value}`)}</span>)}</p></section>}
    </div>
  );
}

function Outcome({ task }: { task: Task }) {
  if (task.error) return <ErrorCard error={task.error}><Suggestions error={task.error} /></ErrorCard>;
  if (task.outputs === null || task.outputs === undefined) return <p class="muted">{TERMINAL.has(task.status) ? "It gave nothing." : "Nothing yet."}</p>;
  return <JsonTree value={task.outputs} root="outputs" />;
}

function Input({ task, step }: { task: string; step: Step }) {
  const bound = Object.entries(step.bound_from ?? {});
  return (
    <div class="stack">
      {step.input ? <PayloadView task={task} payload={step.input} /> : <p class="muted">{step.status === "pending" ? "Not called yet." : "It was called with nothing."}</p>}
      {bound.length > 0 && <section><h3>Bound from</h3><dl class="bound">{bound.map(([name, from]) => <div key={name}><dt class="mono">{visible(name)}</dt><dd class="mono wrap">{visible(typeof from === "string" ? from : JSON.stringify(from))}</dd></div>)}</dl></section>}
      <dl class="facts">
        <div><dt>Tool</dt><dd class="mono">{visible(step.tool_used ?? step.tool ?? "none")}{step.tool_used && step.tool_used !== step.tool && <> <span class="muted">instead of {visible(step.tool ?? "")}</span></>}</dd></div>
        {step.effect && <div><dt>Effect</dt><dd>{step.effect}</dd></div>}
        <div><dt>On error</dt><dd>{step.on_error}</dd></div>
        {step.waiting_on && <div><dt>Waits for</dt><dd>{visible(step.waiting_on.kind)} {visible(step.waiting_on.detail ?? "")}</dd></div>}
        {step.skip && <div><dt>Skipped</dt><dd>{step.skip.reason.replaceAll("_", " ")}{step.skip.upstream && ` (${step.skip.upstream})`}</dd></div>}
      </dl>
    </div>
  );
}

function Output({ task, step, streamed }: { task: string; step: Step; streamed: string | undefined }) {
  return (
    <div class="stack">
      {streamed !== undefined && <Streamed text={streamed} />}
      {step.error && <ErrorCard error={step.error}><Suggestions error={step.error} /></ErrorCard>}
      {step.summary && <p><Said text={step.summary} /></p>}
      <Left task={task} step={step} />
      {step.output ? <PayloadView task={task} payload={step.output} root={step.id} /> : !step.error && <p class="muted">{step.status === "skipped" ? "Skipped: there is none." : "Nothing yet."}</p>}
    </div>
  );
}

/** What calls left beside their output: pictures are shown, the rest can be saved. */
function Left({ task, step }: { task: string; step: Step }) {
  const read = useMemo(() => resource(() => get<{ items: Artifact[] }>(`/v1/tasks/${task}/artifacts`)), [task, step.id, step.status, step.attempts.length]);
  useEffect(() => {
    void read.refresh();
    return () => read.stop();
  }, [read]);
  const left = read.value.value?.items.filter((one) => one.step === step.id && !VALUES.has(one.name)) ?? [];
  return <>{left.map((one) => <section key={one.digest} class="left"><h3><Said text={one.name} /></h3><PayloadView task={task} payload={{ artifact: one.digest, media_type: one.media_type, bytes: one.bytes, untrusted: one.untrusted }} /></section>)}</>;
}

/** Values of the step itself, which are shown as such. */
const VALUES = new Set(["input", "output", "items"]);

/** What can be done about it, each with its request. */
export function Suggestions({ error }: { error: ApiError }) {
  const [said, setSaid] = useState<Error | string | null>(null);
  const ready = error.suggestions?.filter((one) => one.request && Object.keys(one.request.body).length > 0 && !["edit", "wait"].includes(one.action)) ?? [];
  if (!ready.length) return null;
  const act = async (n: number): Promise<void> => {
    const asked = ready[n]?.request;
    if (!asked) return;
    try {
      await request(asked.method, asked.path, asked.body);
      setSaid("Done.");
    } catch (problem) {
      setSaid(problem as Error);
    }
  };
  return <div class="suggestions">{ready.map((one, n) => <button type="button" class="tiny" key={one.action + one.label} onClick={() => void act(n)}>{visible(one.label)}</button>)}{said !== null && <span class="small muted">{typeof said === "string" ? said : said.message}</span>}</div>;
}

function Attempts({ task, step }: { task: string; step: Step }) {
  if (!step.attempts.length) return <p class="muted">It was not called yet.</p>;
  return <ol class="attempts">{[...step.attempts].reverse().map((one) => <OneAttempt key={one.number} task={task} attempt={one} step={step} last={one.number === step.attempts.at(-1)?.number} />)}</ol>;
}

const ENDS: Readonly<Record<string, "completed" | "failed" | "running" | "stalled">> = { succeeded: "completed", failed: "failed", timed_out: "failed", killed: "failed", abandoned: "stalled", started: "running" };

/** What held a process of its own: the walls and limits that were in force. */
const held = (containment: JsonObject): string => Object.entries(containment).filter(([, value]) => value !== null && value !== false).map(([name, value]) => (value === true ? name : `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)).join(", ") || "nothing";

function OneAttempt({ task, attempt, step, last }: { task: string; attempt: Attempt; step: Step; last: boolean }) {
  const usage = Object.entries(attempt.usage ?? {}).filter(([, value]) => value !== null && value !== 0 && (typeof value !== "object" || Object.keys(value as object).length > 0));
  const facts: [string, string][] = [
    ["Tool", `${attempt.tool} ${attempt.tool_version}`], ["Worker", attempt.worker ? shortId(attempt.worker) : "—"], ["Epoch", String(attempt.epoch)], ["Key", attempt.idempotency_key],
    ...(attempt.containment ? [["Held by", held(attempt.containment)] as [string, string]] : []),
    ...(attempt.effect_state ? [["Effect", attempt.effect_state] as [string, string]] : []),
    ...usage.map(([name, value]) => [name.replaceAll("_", " "), name.endsWith("_bytes") || name.startsWith("bytes") ? bytes(Number(value)) : typeof value === "object" ? JSON.stringify(value) : String(value)] as [string, string]),
  ];
  return (
    <li class="card attempt">
      <p class="attempt-head"><Glyph mark={ENDS[attempt.status] ?? "queued"} /><strong>Try {attempt.number}</strong> <span>{attempt.status.replace("_", " ")}</span>
        <span class="muted small">{clock(instant(attempt.started_at) ?? 0)}{attempt.duration_s !== null && ` · ${length(attempt.duration_s * 1000)}`}{attempt.generation > 1 && ` · generation ${attempt.generation}`}</span></p>
      {attempt.error && <ErrorCard error={attempt.error}>{last && step.error && <Suggestions error={step.error} />}</ErrorCard>}
      {last && step.phase === "retry_wait" && step.retry?.next_at && <p class="small s-retrying">Next try at {clock(instant(step.retry.next_at) ?? 0)}: retry {step.retry.count} of {step.retry.max ?? "?"}.</p>}
      <details><summary class="small">Details</summary><dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd class="mono wrap">{visible(value)}</dd></div>)}</dl>{attempt.input && <PayloadView task={task} payload={attempt.input} />}</details>
    </li>
  );
}

export const Parent = ({ task }: { task: Task }) => {
  if (!task.parent) return null;
  const words: Record<string, string> = { fork_of: "forked from", undo_of: "takes back", child_of: "part of", extra_of: "made by" };
  return <> · {words[task.parent.link] ?? task.parent.link} <To path={`/tasks/${task.parent.task}`} class="mono">{shortId(task.parent.task)}</To></>;
};
