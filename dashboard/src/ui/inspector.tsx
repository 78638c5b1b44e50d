// What a step was given and gave, what it said, how often it was tried, and what the journal holds.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError, Attempt, Json, Pause, Step, Task } from "../data/api.ts";
import { onEvent } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import { get, raw, request } from "../data/session.ts";
import type { Entry, TaskData } from "../data/task.ts";
import { TERMINAL, ofStep } from "../logic/status.ts";
import { bytes, logLine, shortId, visible } from "../logic/text.ts";
import { clock, instant, length } from "../logic/times.ts";
import type { Act } from "./actions.tsx";
import { Decision } from "./decision.tsx";
import { Download, JsonTree, PayloadView } from "./json.tsx";
import { Glyph, StatusMark } from "./marks.tsx";
import { ErrorCard, Meter, Panel, Said, To } from "./parts.tsx";
import { useVirtual } from "./virtual.ts";

export const TABS = ["input", "output", "logs", "attempts", "journal"] as const;
export type Tab = (typeof TABS)[number] | "decide";

interface InspectorProps {
  data: TaskData;
  task: Task;
  step: string | null;
  tab: Tab;
  pause: Pause | null;
  onTab: (tab: Tab) => void;
  onClose: () => void;
  /** Without it nothing can be done, only looked at. */
  onAct?: (act: Act) => void;
}

export function Inspector({ data, task, step, tab, pause, onTab, onClose, onAct }: InspectorProps) {
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
          {tab === "logs" && <Logs task={task.id} step={step} streamed={step === null ? undefined : data.streamed.value.get(step)} live={!TERMINAL.has(task.status)} />}
          {tab === "attempts" && (step === null ? <p class="muted">Choose a step to see how often it was tried.</p> : found && <Attempts task={task.id} step={found} />)}
          {tab === "journal" && <Journal data={data} step={step} />}
        </Panel>
      </div>
      {step !== null && tab !== "decide" && onAct && (
        <footer class="inspector-foot">
          <button type="button" class="tiny" disabled={!task.actions?.includes("retry")} title={task.actions?.includes("retry") ? "" : `not possible while ${task.status}`} onClick={() => onAct({ name: "retry", step })}>Retry from here…</button>
          <button type="button" class="tiny" disabled={!task.actions?.includes("fork")} onClick={() => onAct({ name: "fork", step })}>Fork…</button>
          {(seen?.status === "pending" || seen?.status === "paused") && seen.parent === null && <button type="button" class="tiny" disabled={!task.actions?.includes("patch")} onClick={() => onAct({ name: "skip", step })}>Skip…</button>}
        </footer>
      )}
    </aside>
  );
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
      {step.output ? <PayloadView task={task} payload={step.output} root={step.id} /> : !step.error && <p class="muted">{step.status === "skipped" ? "Skipped: there is none." : "Nothing yet."}</p>}
    </div>
  );
}

const Streamed = ({ text }: { text: string }) => <section class="streamed"><p class="small muted">As it comes; not recorded</p><pre>{logLine(text)}</pre></section>;

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

function OneAttempt({ task, attempt, step, last }: { task: string; attempt: Attempt; step: Step; last: boolean }) {
  const usage = Object.entries(attempt.usage ?? {}).filter(([, value]) => value !== null && value !== 0 && (typeof value !== "object" || Object.keys(value as object).length > 0));
  const facts: [string, string][] = [
    ["Tool", `${attempt.tool} ${attempt.tool_version}`], ["Worker", attempt.worker ? shortId(attempt.worker) : "—"], ["Epoch", String(attempt.epoch)], ["Key", attempt.idempotency_key],
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

interface Line {
  n: number;
  at: string | null;
  step: string | null;
  attempt: number | null;
  level: string | null;
  message: string | null;
  fields: { [name: string]: Json } | null;
}

const KEPT = 50_000;
const BACKLOG = 1000;

function Logs({ task, step, streamed, live }: { task: string; step: string | null; streamed: string | undefined; live: boolean }) {
  const [lines, setLines] = useState<Line[]>([]);
  const [level, setLevel] = useState("");
  const [text, setText] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
  useEffect(() => {
    let here = true;
    let after = 0;
    const all: Line[] = [];
    const more = async (): Promise<void> => {
      while (here) {
        const asked = new URLSearchParams({ after: String(after), limit: "500", ...(step === null ? {} : { step }), ...(level ? { level } : {}) });
        const page = await get<{ items: Line[]; next_after: number }>(`/v1/tasks/${task}/logs?${asked}`);
        if (!here) return;
        all.push(...page.items);
        if (all.length > KEPT) all.splice(0, all.length - KEPT);
        setLines(all.slice(-KEPT));
        if (page.items.length < 500 || all.length >= KEPT) {
          after = page.next_after;
          return;
        }
        after = page.next_after;
      }
    };
    const run = (): void => void more().catch((problem: Error) => here && setError(problem));
    run();
    const timer = live ? setInterval(run, 1500) : undefined;
    const end = onEvent((event) => event.task === task && run());
    return () => {
      here = false;
      clearInterval(timer);
      end();
    };
  }, [task, step, level, live]);
  const wanted = text.toLowerCase();
  const shown = wanted ? lines.filter((line) => (line.message ?? "").toLowerCase().includes(wanted)) : lines.length > BACKLOG && !live ? lines : lines;
  const virtual = useVirtual(place, shown.length, 22);
  useEffect(() => {
    if (follow.current && shown.length) virtual.show(shown.length - 1, "end");
  }, [shown.length]);
  return (
    <div class="logs">
      <div class="json-bar">
        <input type="search" aria-label="Filter the log" placeholder="Filter" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <select aria-label="Level" value={level} onChange={(event) => setLevel(event.currentTarget.value)}><option value="">all levels</option><option>info</option><option>warning</option><option>error</option></select>
      </div>
      {streamed !== undefined && <Streamed text={streamed} />}
      {error && <ErrorCard error={error} />}
      {!shown.length && <p class="muted">{wanted ? "No line with this." : "Nothing was logged."}</p>}
      <div class="log-lines mono" ref={place} tabIndex={0} role="region" aria-label="Log lines" onWheel={() => (follow.current = false)}>
        <div style={{ height: `${virtual.height}px` }} class="grid">
          {virtual.items.map(({ index, start }) => {
            const line = shown[index];
            if (!line) return null;
            const rest = line.fields && Object.keys(line.fields).length ? ` ${JSON.stringify(line.fields)}` : "";
            return <p key={line.n} class={`log-line ${line.level === "error" ? "s-failed" : line.level === "warning" ? "s-retrying" : ""}`} style={{ transform: `translateY(${start}px)` }} title={logLine((line.message ?? "") + rest)}>
              <span class="muted">{line.at ? clock(instant(line.at) ?? 0) : ""} {step === null && line.step ? `${visible(line.step)} ` : ""}</span>{logLine(line.message ?? "")}<span class="muted">{logLine(rest)}</span></p>;
          })}
        </div>
      </div>
    </div>
  );
}

function Journal({ data, step }: { data: TaskData; step: string | null }) {
  void data.version.value;
  const [text, setText] = useState("");
  const [open, setOpen] = useState<number | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const wanted = text.toLowerCase();
  const entries = useMemo(() => data.journal.filter((one) => (step === null || one.step === step || one.step?.startsWith(`${step}[`)) && (!wanted || one.type.includes(wanted) || one.actor.toLowerCase().includes(wanted) || one.step?.toLowerCase().includes(wanted))), [data.version.value, step, wanted, data.journal.length]);
  const virtual = useVirtual(place, entries.length, 26);
  const everything = async (): Promise<Blob> => new Blob([await (await raw("GET", `/v1/tasks/${data.id}/events?after=0&limit=500`)).text()], { type: "application/octet-stream" });
  return (
    <div class="logs">
      <div class="json-bar"><input type="search" aria-label="Filter the journal" placeholder="Filter: pause, failed, a name" value={text} onInput={(event) => setText(event.currentTarget.value)} /><Download name={`${data.id}.json`} make={everything} label="Export" /></div>
      <p class="small muted">{entries.length.toLocaleString("en")} events</p>
      {open !== null && <EventView task={data.id} seq={open} onClose={() => setOpen(null)} />}
      <div class="log-lines" ref={place} tabIndex={0} role="region" aria-label="Events">
        <div class="grid" style={{ height: `${virtual.height}px` }}>
          {virtual.items.map(({ index, start }) => {
            const one = entries[index];
            return one ? <JournalLine key={one.seq} entry={one} top={start} onOpen={() => setOpen(one.seq)} /> : null;
          })}
        </div>
      </div>
    </div>
  );
}

const JournalLine = ({ entry, top, onOpen }: { entry: Entry; top: number; onOpen: () => void }) => (
  <button type="button" class="journal-line" data-seq={entry.seq} style={{ transform: `translateY(${top}px)` }} onClick={onOpen}>
    <span class="muted mono">{entry.seq}</span><span class="muted">{clock(instant(entry.at) ?? 0)}</span><span>{entry.type}</span><span class="mono cut">{visible(entry.step ?? "")}</span><span class="muted cut">{visible(entry.actor)}</span>
  </button>
);

function EventView({ task, seq, onClose }: { task: string; seq: number; onClose: () => void }) {
  const [event, setEvent] = useState<Json | null>(null);
  useEffect(() => {
    setEvent(null);
    void get<{ events: Json[] }>(`/v1/tasks/${task}/events?after=${seq - 1}&limit=1`).then((page) => setEvent(page.events[0] ?? null), () => setEvent("it cannot be read now"));
  }, [task, seq]);
  return <div class="card event"><header><strong class="grow">Event {seq}</strong><button type="button" class="tiny plain" onClick={onClose}>Close</button></header>{event !== null && <JsonTree value={event} />}</div>;
}

export const Parent = ({ task }: { task: Task }) => {
  if (!task.parent) return null;
  const words: Record<string, string> = { fork_of: "forked from", undo_of: "takes back", child_of: "part of", extra_of: "made by" };
  return <> · {words[task.parent.link] ?? task.parent.link} <To path={`/tasks/${task.parent.task}`} class="mono">{shortId(task.parent.task)}</To></>;
};
