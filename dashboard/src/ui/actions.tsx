// What may be done with a task. Only a button runs ahead of the server, never a status; errors stay where they were made.

import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Json, JsonObject, Task } from "../data/api.ts";
import { at } from "../data/base.ts";
import { connected } from "../data/connection.ts";
import { get, may, post, request } from "../data/session.ts";
import type { TaskData } from "../data/task.ts";
import { visible } from "../logic/text.ts";
import { Dialog, ErrorCard } from "./parts.tsx";
import { JsonField } from "./schemaform.tsx";

export interface Act {
  name: "pause" | "pause-now" | "resume" | "cancel" | "retry" | "fork" | "patch" | "undo" | "skip";
  step?: string;
}

/** Why something cannot be done now; null: it can. */
export function refusal(task: Task, action: string): string | null {
  if (!connected.value) return "not possible while the connection is lost";
  if (!may("write")) return "this token may not steer tasks (scope write)";
  return task.actions?.includes(action) ? null : `not possible while ${task.status}`;
}

export const pathOf = (task: Task): string => `/v1/tasks/${task.id}`;

interface DialogProps {
  data: TaskData;
  task: Task;
  act: Act;
  onClose: () => void;
}

export function ActionDialog(props: DialogProps) {
  switch (props.act.name) {
    case "cancel":
      return <CancelDialog {...props} />;
    case "retry":
      return <RetryDialog {...props} />;
    case "fork":
      return <ForkDialog {...props} />;
    case "skip":
      return <SkipDialog {...props} />;
    case "patch":
      return <PatchDialog {...props} />;
    case "undo":
      return <UndoDialog {...props} />;
    default:
      return null;
  }
}

/** Send, and stay open with what went wrong. */
function useSend(onClose: () => void): { busy: boolean; error: Error | null; send: (work: () => Promise<unknown>) => void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const send = (work: () => Promise<unknown>): void => {
    setBusy(true);
    setError(null);
    work().then(onClose, (problem: Error) => setError(problem)).finally(() => setBusy(false));
  };
  return { busy, error, send };
}

const Note = ({ value, required = false, onInput }: { value: string; required?: boolean; onInput: (text: string) => void }) => (
  <div class="field"><label for="act-note">Note {!required && <span class="hint">optional</span>}</label><textarea id="act-note" rows={2} value={value} onInput={(event) => onInput(event.currentTarget.value)} /></div>
);

const List = ({ name, items }: { name: string; items: readonly string[] }) => (items.length ? <section><h3>{name}</h3><ul class="names">{items.slice(0, 60).map((one) => <li key={one} class="tag mono">{visible(one)}</li>)}{items.length > 60 && <li class="muted">and {items.length - 60} more</li>}</ul></section> : null);

function CancelDialog({ data, task, onClose }: DialogProps) {
  const [note, setNote] = useState("");
  const { busy, error, send } = useSend(onClose);
  const steps = [...data.view.steps.values()];
  const going = steps.filter((step) => step.phase === "executing").map((step) => step.id);
  const made = (task.steps ?? []).filter((step) => step.status === "completed" && step.effect !== null && step.effect !== "pure").map((step) => `${step.id} (${step.effect})`);
  return (
    <Dialog title="Cancel this task?" onClose={onClose}>
      <p>It ends for good. What it has done stays done.</p>
      <List name="Calls to be ended" items={going} />
      <List name="Effects already made" items={made} />
      <Note value={note} onInput={setNote} />
      {error && <ErrorCard error={error} />}
      <footer><button type="button" autofocus onClick={onClose}>Keep running</button><button type="button" class="danger" disabled={busy} onClick={() => send(() => post(`${pathOf(task)}/cancel`, note ? { note } : {}))}>{busy ? "Cancelling…" : "Cancel the task"}</button></footer>
    </Dialog>
  );
}

interface Again {
  kept: string[];
  again: string[];
  repeats: { step: string; tool: string; effect: string }[];
}

function useDryRun<Reply>(path: string, body: JsonObject, method = "POST"): { reply: Reply | null; error: Error | null } {
  const [reply, setReply] = useState<Reply | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const text = JSON.stringify(body);
  useEffect(() => {
    let here = true;
    const timer = setTimeout(() => {
      request<Reply>(method, path, { ...(JSON.parse(text) as JsonObject), dry_run: true }).then(
        (found) => { if (here) { setReply(found); setError(null); } },
        (problem: Error) => { if (here) setError(problem); },
      );
    }, 150);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [path, text]);
  return { reply, error };
}

const StepChoice = ({ data, value, onChange }: { data: TaskData; value: string; onChange: (step: string) => void }) => (
  <div class="field"><label for="from-step">From step</label><select id="from-step" value={value} onChange={(event) => onChange(event.currentTarget.value)}>{data.view.order.map((id) => <option key={id} value={id}>{visible(data.step(id)?.title ?? id)} ({id})</option>)}</select></div>
);

const firstFailed = (data: TaskData): string => data.view.order.find((id) => data.view.steps.get(id)?.status === "failed") ?? data.view.order[0] ?? "";

function RetryDialog({ data, task, act, onClose }: DialogProps) {
  const [from, setFrom] = useState(() => (act.step ?? firstFailed(data)).replace(/\[.*$/, ""));
  const [note, setNote] = useState("");
  const body: JsonObject = { from_step: from };
  const { reply, error: wrong } = useDryRun<Again>(`${pathOf(task)}/retry`, body);
  const { busy, error, send } = useSend(onClose);
  const repeats = reply?.repeats ?? [];
  const ready = reply !== null && !busy && (repeats.length === 0 || note.trim() !== "");
  return (
    <Dialog title="Retry from a step" onClose={onClose}>
      <StepChoice data={data} value={from} onChange={setFrom} />
      {wrong ? <ErrorCard error={wrong} /> : reply === null ? <p class="muted">Looking what that would mean…</p> : (
        <>
          <List name="Kept" items={reply.kept} />
          <List name="Runs again" items={reply.again} />
          {repeats.length > 0 && <section class="note warn"><div><h3>Happens again</h3><ul>{repeats.map((one) => <li key={one.step}><span class="mono">{visible(one.step)}</span> {visible(one.tool)}, {one.effect === "idempotent" ? "sent again with a new key" : one.effect}</li>)}</ul><p class="small muted">This needs a note.</p></div></section>}
        </>
      )}
      <Note value={note} required={repeats.length > 0} onInput={setNote} />
      {error && <ErrorCard error={error} />}
      <footer><button type="button" onClick={onClose}>Close</button><button type="button" class="primary" disabled={!ready} onClick={() => send(() => post(`${pathOf(task)}/retry`, { ...body, ...(note.trim() ? { note: note.trim() } : {}), ...(repeats.length ? { confirm_effects: true } : {}) }))}>{busy ? "Starting…" : "Retry"}</button></footer>
    </Dialog>
  );
}

function ForkDialog({ data, task, act, onClose }: DialogProps) {
  const [from, setFrom] = useState(() => (act.step ?? firstFailed(data)).replace(/\[.*$/, ""));
  const [inputs, setInputs] = useState<Json | undefined>(task.inputs);
  const [args, setArgs] = useState<Json | undefined>({});
  const [note, setNote] = useState("");
  const { route } = useLocation();
  const { busy, error, send } = useSend(onClose);
  const changed = JSON.stringify(inputs) !== JSON.stringify(task.inputs);
  const given = typeof args === "object" && args !== null && Object.keys(args).length > 0;
  const body: JsonObject = { from_step: from, ...(changed && inputs !== undefined ? { inputs } : {}), ...(given ? { arguments: { [from]: args } } : {}), ...(note.trim() ? { note: note.trim() } : {}) };
  const { reply, error: wrong } = useDryRun<Again>(`${pathOf(task)}/fork`, body);
  return (
    <Dialog title="Fork: a new task that begins here" onClose={onClose}>
      <StepChoice data={data} value={from} onChange={setFrom} />
      <JsonField label="Inputs" initial={task.inputs} onChange={setInputs} />
      <JsonField label="Other arguments of this step" hint="Win over the plan's" initial={{}} onChange={setArgs} />
      {wrong ? <ErrorCard error={wrong} /> : reply && <><List name="Copied from this task" items={reply.kept} /><List name="Runs" items={reply.again} /></>}
      <Note value={note} onInput={setNote} />
      {error && <ErrorCard error={error} />}
      <footer><button type="button" onClick={onClose}>Close</button><button type="button" class="primary" disabled={busy || inputs === undefined || args === undefined} onClick={() => send(async () => route(at(`/tasks/${(await post<Task>(`${pathOf(task)}/fork`, body)).id}`)))}>{busy ? "Forking…" : "Fork"}</button></footer>
    </Dialog>
  );
}

interface Revised {
  revision: number;
  diff: Json[];
}

function SkipDialog({ task, act, onClose }: DialogProps) {
  const [note, setNote] = useState("");
  const body: JsonObject = { base_revision: task.plan.revision ?? 1, ops: [{ op: "skip", id: act.step ?? "", ...(note.trim() ? { note: note.trim() } : {}) }] };
  const { busy, error, send } = useSend(onClose);
  return (
    <Dialog title={`Skip ${act.step ?? ""}?`} onClose={onClose}>
      <p>It will not be called. Steps that need its output may be skipped too, or ask.</p>
      <Note value={note} onInput={setNote} />
      {error && <ErrorCard error={error} />}
      <footer><button type="button" autofocus onClick={onClose}>Keep it</button><button type="button" class="primary" disabled={busy} onClick={() => send(() => request("PATCH", `${pathOf(task)}/plan`, body))}>Skip it</button></footer>
    </Dialog>
  );
}

function PatchDialog({ data, task, onClose }: DialogProps) {
  const pending = data.view.order.filter((id) => data.view.steps.get(id)?.status === "pending");
  const [step, setStep] = useState(pending[0] ?? "");
  const [plan, setPlan] = useState<{ revision: number; plan: { steps: (JsonObject & { id: string })[] } } | null>(null);
  const [edited, setEdited] = useState<Json | undefined>(undefined);
  const [note, setNote] = useState("");
  const { busy, error, send } = useSend(onClose);
  useEffect(() => void get<typeof plan>(`${pathOf(task)}/plan`).then(setPlan, () => undefined), []);
  const found = plan?.plan.steps.find((one) => one.id === step) ?? null;
  const ready = found !== null && edited !== undefined && JSON.stringify(edited) !== JSON.stringify(found);
  const body: JsonObject = { base_revision: plan?.revision ?? 1, ops: ready ? [{ op: "replace", id: step, step: edited as Json }] : [], ...(note.trim() ? { note: note.trim() } : {}) };
  return (
    <Dialog title="Edit remaining steps" onClose={onClose} wide>
      {!pending.length ? <p>Every step has begun already: fork the task to do something else.</p> : (
        <>
          <div class="field"><label for="patch-step">Step</label><select id="patch-step" value={step} onChange={(event) => setStep(event.currentTarget.value)}>{pending.map((id) => <option key={id}>{id}</option>)}</select></div>
          {found && <JsonField key={step} label="As it shall be" initial={found} onChange={setEdited} />}
          {ready && <DryPatch path={`${pathOf(task)}/plan`} body={body} />}
          <Note value={note} onInput={setNote} />
        </>
      )}
      {error && <ErrorCard error={error} />}
      <footer><button type="button" onClick={onClose}>Close</button>{pending.length > 0 && <button type="button" class="primary" disabled={!ready || busy} onClick={() => send(() => request("PATCH", `${pathOf(task)}/plan`, body))}>Apply</button>}</footer>
    </Dialog>
  );
}

function DryPatch({ path, body }: { path: string; body: JsonObject }) {
  const { reply, error } = useDryRun<Revised>(path, body, "PATCH");
  if (error) return <ErrorCard error={error} />;
  if (!reply) return <p class="muted">Checking…</p>;
  return <section><h3>What changes (revision {reply.revision})</h3><pre class="diff">{reply.diff.map((one, n) => <span key={n} class="plus">{visible(typeof one === "string" ? one : JSON.stringify(one))}{"\n"}</span>)}</pre></section>;
}

interface Undoing {
  undo: string[];
  not_undoable: { step: string; why: string }[];
  conflicts: Json[];
}

function UndoDialog({ task, onClose }: DialogProps) {
  const [note, setNote] = useState("");
  const { route } = useLocation();
  const { reply, error: wrong } = useDryRun<Undoing>(`${pathOf(task)}/undo`, {});
  const { busy, error, send } = useSend(onClose);
  return (
    <Dialog title="Take back what it did" onClose={onClose}>
      {wrong ? <ErrorCard error={wrong} /> : !reply ? <p class="muted">Looking what can be taken back…</p> : (
        <>
          <List name="Can be taken back" items={reply.undo} />
          {reply.not_undoable.length > 0 && <section><h3>Stays</h3><ul>{reply.not_undoable.map((one: { step: string; why: string }) => <li key={one.step}><span class="mono">{visible(one.step)}</span> <span class="muted">{visible(one.why)}</span></li>)}</ul></section>}
        </>
      )}
      <Note value={note} onInput={setNote} />
      {error && <ErrorCard error={error} />}
      <footer><button type="button" autofocus onClick={onClose}>Close</button><button type="button" class="primary" disabled={busy || !reply?.undo.length} onClick={() => send(async () => route(at(`/tasks/${(await post<Task>(`${pathOf(task)}/undo`, note.trim() ? { note: note.trim() } : {})).id}`)))}>Take back</button></footer>
    </Dialog>
  );
}

