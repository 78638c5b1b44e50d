// One decision: what will happen, why it is asked, what there is to go by, and the answers that are possible.
// Nothing is chosen beforehand, Enter alone decides nothing, and a form whose question has changed waits a moment.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused } from "../client/client.ts";
import type { Answer, Attempt, Json, JsonObject, Page, Pause, Payload, Schema, Step, Tool } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { connected } from "../data/connection.ts";
import { inbox } from "../data/inbox.ts";
import { compare } from "../data/large.ts";
import type { Run } from "../data/large.ts";
import { get, may, request } from "../data/session.ts";
import { changes, isFlat } from "../logic/schema.ts";
import { visible } from "../logic/text.ts";
import { age, instant } from "../logic/times.ts";
import { isObject } from "../logic/search.ts";
import { JsonTree, LongText, PayloadView } from "./json.tsx";
import { Ago, At, ErrorCard, Meter, Said, To, announce } from "./parts.tsx";
import { Fields, JsonField } from "./schemaform.tsx";

const INERT_MS = 500;
const EFFECTS: Readonly<Record<string, string>> = {
  pure: "changes nothing", idempotent: "may be sent twice without harm", verifiable: "it can be looked up whether it happened", once: "cannot be undone",
};
const KINDS: Readonly<Record<string, string>> = {
  approvalRequired: "Approval", inputRequired: "Question", toolError: "A tool failed", unresolvableParams: "Missing arguments", schemaMismatch: "Arguments do not fit",
  unresolvedDependency: "Missing output", uncertainOutcome: "Did it happen?", limitReached: "Limit reached", userRequested: "Paused", resourcePressure: "Paused: too little room",
};
const DANGER: ReadonlySet<string> = new Set(["reject", "fail", "cancel"]);

/** Questions whose first answer is what the plan is about; in others nothing is suggested. */
const PLAIN_FIRST: ReadonlySet<string> = new Set(["approvalRequired", "inputRequired"]);

export const kindOfPause = (pause: Pause): string => KINDS[pause.reason.type] ?? pause.reason.type;

/** Whoever answered, when, and what. */
export function AnsweredBy({ pause }: { pause: Pause }) {
  const said = pause.answered;
  if (!said) return <p class="note">{pause.status === "expired" ? "Nobody answered in time." : "This is not asked any more."}</p>;
  return <p class="note">Answered by {visible(said.actor.id)} ({said.actor.via}) <Ago time={said.at} suffix=" ago" />: {said.answer}{said.note && <> · “<Said text={said.note} />”</>}</p>;
}

export function Decision({ pause, onDone, heading = true }: { pause: Pause; onDone?: (answered: Pause) => void; heading?: boolean }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const [closed, setClosed] = useState<Pause | null>(null);
  const [inert, setInert] = useState(false);
  const shown = useRef(pause.id);
  useEffect(() => {
    if (shown.current === pause.id) return;
    shown.current = pause.id;
    setInert(true);
    const timer = setTimeout(() => setInert(false), INERT_MS);
    return () => clearTimeout(timer);
  }, [pause.id]);
  const send = async (answer: Answer, more: JsonObject): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const done = await request<Pause>(answer.request.method, answer.request.path, { ...answer.request.body, ...more });
      inbox.stale();
      announce("Answered");
      setClosed(done);
      setChosen(null);
      onDone?.(done);
    } catch (problem) {
      setError(problem as Error);
      if (problem instanceof Refused && (problem.code === "already_answered" || problem.status === 404 || problem.status === 410)) await look();
    } finally {
      setBusy(false);
    }
  };
  const look = async (): Promise<void> => {
    inbox.stale();
    setClosed(await get<Pause>(`/v1/inbox/${pause.id}`).catch(() => null));
  };
  useEffect(() => {
    if (pause.status !== "open") setClosed(pause);
  }, [pause]);
  const over = closed !== null && closed.status !== "open" ? closed : null;
  const stale = error instanceof Refused && error.code === "stale_digest";
  const possible = useRef(pause.answers); // what somebody has typed stays, even when it is answered elsewhere
  if (pause.answers.length) possible.current = pause.answers;
  const answer = possible.current.find((one) => one.answer === chosen) ?? null;
  const reason = !connected.value ? "not while the connection is lost" : !may("answer") ? "this token may not answer (scope answer)" : null;
  const blocked = busy || inert || reason !== null || stale || over !== null;
  return (
    <article class="decision" aria-label={pause.title}>
      {heading && (
        <header>
          <p class="small"><span class="s-paused status">{kindOfPause(pause)}</span> <span class="muted">asked <Ago time={pause.opened_at} suffix=" ago" /><Expiry pause={pause} /></span></p>
          <h2><Said text={pause.title} /></h2>
        </header>
      )}
      <What pause={pause} />
      <div class="why">
        <p>{pause.why !== (pause.reason as { error?: string }).error && <><span class="muted">Asked because</span> <Said text={pause.why} /></>}</p>
        {pause.guidance && <p><span class="muted">Guidance</span> <Said text={pause.guidance} /></p>}
      </div>
      {pause.show.length > 0 && <section class="evidence"><h3>To go by</h3>{pause.show.map((one, n) => <div key={n} class="shown">{typeof one === "string" ? <pre><LongText text={one} /></pre> : <JsonTree value={one} />}</div>)}</section>}
      {over && <AnsweredBy pause={over} />}
      {(!over || answer) && (
        <>
          {stale && <p class="note warn" role="alert">The call has changed: review again. <To path={`/tasks/${pause.task}`}>Open the task</To></p>}
          {error && !stale && !over && <ErrorCard error={error} />}
          {answer && (answer.schema !== null || DANGER.has(answer.answer)) ? (
            <AnswerForm key={answer.answer + pause.id} pause={pause} answer={answer} blocked={blocked} onSend={(more) => void send(answer, more)} onBack={() => setChosen(null)} />
          ) : (
            <div class="answers" role="group" aria-label="Answers">
              {pause.answers.map((one, n) => (
                <button type="button" key={one.answer} class={n === 0 && PLAIN_FIRST.has(pause.reason.type) ? "primary" : DANGER.has(one.answer) ? "danger" : ""} disabled={blocked} title={reason ?? ""}
                  onClick={() => (one.schema === null && !DANGER.has(one.answer) ? void send(one, {}) : setChosen(one.answer))}>
                  {visible(one.label)}{(one.schema !== null || DANGER.has(one.answer)) && "…"}
                </button>
              ))}
            </div>
          )}
          {reason && <p class="small muted">{reason}</p>}
        </>
      )}
    </article>
  );
}

function Expiry({ pause }: { pause: Pause }) {
  const at = instant(pause.expires_at);
  if (at === null || pause.status !== "open") return null;
  const left = at - now.value;
  return <> · {left > 0 ? `expires in ${age(left)}` : "expired"}{pause.on_timeout && `, then ${pause.on_timeout}`}</>;
}

/** What will happen, exactly: no argument is left out, and a long one says how long it is. */
function What({ pause }: { pause: Pause }) {
  const reason = pause.reason as unknown as Record<string, Json>;
  switch (pause.reason.type) {
    case "limitReached":
      return <section class="what"><h3>The limit</h3><Meter label={String(reason.limit)} used={Number(reason.used)} max={Number(reason.max)} /></section>;
    case "toolError":
      return <section class="what"><h3>What went wrong</h3><div class="card error-card"><p><strong><Said text={String(reason.error)} /></strong></p><p class="muted small">step <To path={`/tasks/${pause.task}?step=${encodeURIComponent(String(reason.failedStep))}&tab=attempts`}>{String(reason.failedStep)}</To>{reason.suggestedTool && <> · {visible(String(reason.suggestedTool))}</>}</p></div></section>;
    case "unresolvedDependency":
      return <section class="what"><h3>What is missing</h3><p><code>{visible(String(reason.missingOutput))}</code> of step <To path={`/tasks/${pause.task}?step=${encodeURIComponent(String(reason.producingStep))}`}>{String(reason.producingStep)}</To>, which did not give it.</p></section>;
    case "uncertainOutcome":
      return (
        <section class="what">
          <h3>What was sent</h3>
          <Interrupted pause={pause} step={String(reason.blockedStep)} number={Number(reason.attempt)} />
          <p>Look in the world whether it happened. The key that it was sent with:</p>
          <p class="mono wrap">{String(reason.idempotencyKey)}</p>
          <p class="small muted">If calling it twice is harmless, <code>on_uncertain: retry</code> in the plan removes this question.</p>
        </section>
      );
    case "unresolvableParams":
    case "schemaMismatch":
      return <section class="what"><h3>What is missing</h3><p><code>{visible(String(reason.missingParam ?? (reason.missingFields as Json[] | undefined)?.join(", ") ?? ""))}</code>{reason.suggestedTool && <> for <code>{visible(String(reason.suggestedTool))}</code></>}</p></section>;
    case "inputRequired":
      return reason.question === pause.title ? null : <section class="what"><p class="question"><Said text={String(reason.question)} /></p></section>;
    default:
      return pause.call ? <section class="what"><h3>What will happen</h3><Call task={pause.task} {...pause.call} /><Since pause={pause} now={pause.call.input.value ?? null} /></section> : null;
  }
}

/** The call that nobody knows the end of: what was sent, when, and what looking it up has found. */
function Interrupted({ pause, step, number }: { pause: Pause; step: string; number: number }) {
  const [attempt, setAttempt] = useState<Attempt | null>(null);
  useEffect(() => void get<Attempt>(`/v1/tasks/${pause.task}/steps/${encodeURIComponent(step)}/attempts/${number}`).then(setAttempt, () => undefined), [pause.id]);
  return (
    <>
      <p>Try {number} of step <To path={`/tasks/${pause.task}?step=${encodeURIComponent(step)}&tab=attempts`}>{visible(step)}</To> was interrupted{attempt && <>; it was sent at <At time={attempt.started_at} /></>}.</p>
      {attempt?.input && <Call task={pause.task} tool={attempt.tool} input={attempt.input} />}
      {attempt?.effect_state && <p><span class="muted">Looked up:</span> {visible(attempt.effect_state)}</p>}
    </>
  );
}

/** What is other than when the same step was asked for before. */
function Since({ pause, now: given }: { pause: Pause; now: Json }) {
  const [last, setLast] = useState<Pause | null>(null);
  useEffect(() => {
    const before = (one: Pause): boolean => one.id !== pause.id && one.step === pause.step && one.call !== null;
    void get<Page<Pause>>(`/v1/inbox?answered=1&task=${pause.task}&limit=50`).then((page) => setLast(page.items.filter(before).sort((a, b) => b.opened_at.localeCompare(a.opened_at))[0] ?? null), () => undefined);
  }, [pause.id]);
  const was = last?.call?.input.value ?? null;
  if (!last?.answered || !isObject(was) || !isObject(given)) return null;
  const other = changes(was, given);
  return (
    <section class="changes" aria-label="Since it was last asked">
      <p class="small">{other.length ? "Changed" : "Nothing changed"} since {visible(last.answered.actor.id)} said {last.answered.answer} <Ago time={last.answered.at} suffix=" ago" /></p>
      {other.map((one) => <div key={one.name}><p class="small mono">{visible(one.name)}</p><Changed before={one.before} after={one.after} /></div>)}
    </section>
  );
}

function Call({ task, tool, input, effect, editable = [] }: { task: string; tool: string; input: Payload; effect?: string; editable?: readonly string[] }) {
  const given = input.value;
  const fields = typeof given === "object" && given !== null && !Array.isArray(given) ? Object.entries(given) : [];
  return (
    <div class="call">
      <p class="mono call-name">{visible(tool)}{effect && <span class="tag">{effect}: {EFFECTS[effect] ?? ""}</span>}</p>
      <dl>
        {fields.map(([name, value]) => (
          <div key={name}><dt>{visible(name)}{editable.includes(name) && <span class="tag">can be edited</span>}</dt><dd>{typeof value === "string" ? <pre><LongText text={value} /></pre> : <JsonTree value={value} />}</dd></div>
        ))}
      </dl>
      {input.artifact !== undefined && <PayloadView task={task} payload={input} />}
    </div>
  );
}

/** What the answer needs to be told, and a last look before it is sent. */
function AnswerForm({ pause, answer, blocked, onSend, onBack }: { pause: Pause; answer: Answer; blocked: boolean; onSend: (more: JsonObject) => void; onBack: () => void }) {
  const [note, setNote] = useState("");
  const [value, setValue] = useState<Json | undefined>(undefined);
  const [look, setLook] = useState<{ input: JsonObject; schema: Schema | null } | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const parts = answer.schema?.properties ?? {};
  const field = ["arguments", "output", "value", "max"].find((name) => name in parts) ?? null;
  const needsNote = "note" in parts;
  const before = useMemo(() => (pause.call?.input.value ?? look?.input ?? {}) as JsonObject, [pause, look]);
  useEffect(() => {
    form.current?.querySelector<HTMLElement>("input, textarea, button[type=button]")?.focus();
    if (field === "arguments" && pause.call === null && pause.step !== null) void lookAt(pause, pause.step).then(setLook);
  }, [field === "arguments" && look !== null]);
  const waits = field === "arguments" && pause.call === null && look === null;
  const edited = field === "arguments" && value !== undefined ? changes(before, value as JsonObject) : [];
  const ready = !blocked && (!needsNote || note.trim() !== "") && (field === null || value !== undefined) && (answer.answer !== "edit" || edited.length > 0);
  const send = (): void => {
    if (!ready) return;
    const more: JsonObject = note.trim() ? { note: note.trim() } : {};
    if (field === "arguments") more.arguments = answer.answer === "edit" ? Object.fromEntries(edited.map((one) => [one.name, one.after])) : (value as JsonObject);
    else if (field !== null && value !== undefined) more[field] = value;
    onSend(more);
  };
  return (
    <form class="answer-form" ref={form} aria-label={answer.label} onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); } }}>
      <h3>{visible(answer.label)}</h3>
      {waits ? <p class="muted">Reading…</p> : field !== null && <Part name={field} pause={pause} answer={answer} before={before} look={look} onChange={setValue} />}
      {edited.length > 0 && (
        <section class="changes" aria-label="What changes">
          {edited.map((one) => <div key={one.name}><p class="small mono">{visible(one.name)}</p><Changed before={one.before} after={one.after} /></div>)}
        </section>
      )}
      <div class="field">
        <label for={`note-${pause.id}`}>Note {!needsNote && <span class="hint">optional</span>}</label>
        <textarea id={`note-${pause.id}`} rows={2} required={needsNote} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        <span class="hint">{needsNote ? "Required: it is told to whoever reads the task." : ""}</span>
      </div>
      <div class="actions">
        <button type="button" onClick={onBack}>Back</button>
        <button type="button" class={DANGER.has(answer.answer) ? "danger" : "primary"} disabled={!ready} onClick={send}>{answer.answer === "edit" ? "Approve the edited call" : visible(answer.label)}</button>
      </div>
      <p class="small muted">Sends with <kbd>Ctrl</kbd> <kbd>Enter</kbd>.</p>
    </form>
  );
}

/** What was, and what will be sent instead; of long texts only the lines that differ, and those beside them. */
function Changed({ before, after }: { before: Json | undefined; after: Json }) {
  const [was, is] = [before === undefined ? null : plain(before), plain(after)];
  const [runs, setRuns] = useState<readonly Run[] | null>(null);
  useEffect(() => {
    let here = true;
    setRuns(null);
    if (was?.includes("\n")) void compare(was, is).then((found) => here && setRuns(found));
    return () => {
      here = false;
    };
  }, [was, is]);
  if (runs === null) return <pre class="diff">{was !== null && <span class="minus">- {visible(was)}{"\n"}</span>}<span class="plus">+ {visible(is)}</span></pre>;
  return <pre class="diff">{runs.flatMap((run, n) => linesOf(run, n > 0, n < runs.length - 1).map((line, m) => <span key={`${n}.${m}`} class={run.sign === "+" ? "plus" : run.sign === "-" ? "minus" : "muted"}>{run.sign} {visible(line)}{"\n"}</span>))}</pre>;
}

const BESIDE = 3;

/** Lines of one run; of what did not change only those next to what did. */
function linesOf(run: Run, after: boolean, before: boolean): string[] {
  const lines = run.text.replace(/\n$/, "").split("\n");
  const [head, tail] = [after ? BESIDE : 0, before ? BESIDE : 0];
  if (run.sign !== " " || lines.length <= head + tail + 1) return lines;
  return [...lines.slice(0, head), `… ${lines.length - head - tail} lines as before …`, ...lines.slice(lines.length - tail)];
}

const plain = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The arguments of a failed call, and its tool's schema. */
async function lookAt(pause: Pause, path: string): Promise<{ input: JsonObject; schema: Schema | null }> {
  const step = await get<Step>(`/v1/tasks/${pause.task}/steps/${encodeURIComponent(path)}`).catch(() => null);
  const name = (pause.reason.suggestedTool as string | null) ?? step?.tool_used ?? step?.tool;
  const tool = name ? await get<Tool>(`/v1/tools/${encodeURIComponent(name)}`).catch(() => null) : null;
  return { input: (step?.input?.value ?? {}) as JsonObject, schema: tool?.input_schema ?? null };
}

function Part({ name, pause, answer, before, look, onChange }: { name: string; pause: Pause; answer: Answer; before: JsonObject; look: { schema: Schema | null } | null; onChange: (value: Json | undefined) => void }) {
  const schema = answer.schema?.properties?.[name] ?? {};
  const take = (value: JsonObject | null): void => onChange(value ?? undefined);
  if (name === "max") {
    const reason = pause.reason as unknown as { used: number; max: number };
    return <Fields schema={{ properties: { max: { type: "number", title: "New maximum", description: `used ${reason.used}, now ${reason.max}` } }, required: ["max"] }} initial={{}} onChange={(value) => onChange(value?.max)} />;
  }
  if (name === "arguments") {
    const missing = [pause.reason.missingParam, ...((pause.reason.missingFields as Json[] | undefined) ?? [])].filter((one): one is string => typeof one === "string").map((one) => one.replace(/^\//, "").split(/[./]/)[0] ?? one);
    const known = isFlat(schema) ? schema : look?.schema && isFlat(look.schema) ? look.schema : null;
    if (known === null && Object.keys(before).length === 0) return <JsonField label="Arguments" initial={missing.length ? Object.fromEntries(missing.map((one) => [one, null])) : {}} onChange={onChange} />;
    const all = known?.properties ?? Object.fromEntries(Object.keys(before).map((one) => [one, {}]));
    const names = answer.answer === "supply_arguments" && missing.length ? missing : Object.keys(all);
    const initial = Object.fromEntries(names.filter((one) => before[one] !== undefined).map((one) => [one, before[one] ?? null]));
    return <Fields schema={{ properties: Object.fromEntries(names.map((one) => [one, all[one] ?? {}])), required: answer.answer === "supply_arguments" ? missing : [] }} initial={initial} onChange={take} />;
  }
  if (isFlat(schema)) return <Fields schema={schema} initial={{}} onChange={take} />;
  if (schema.type === "string" || schema.enum !== undefined || schema.type === "number" || schema.type === "integer" || schema.type === "boolean") {
    return <Fields schema={{ properties: { [name]: { title: "Answer", ...schema } }, required: [name] }} initial={{}} onChange={(value) => onChange(value?.[name])} />;
  }
  return <JsonField label={name === "output" ? "Output" : "Answer"} hint={name === "output" ? "What the step would have given" : ""} initial={undefined} onChange={onChange} />;
}
