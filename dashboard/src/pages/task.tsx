// One task: how far it is, why it is where it is, what each step did, and what may be done.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import { Refused } from "../client/client.ts";
import type { Page, Task } from "../data/api.ts";
import { onEvent } from "../data/live.ts";
import { narrow } from "../data/media.ts";
import { resource } from "../data/resource.ts";
import { get, post } from "../data/session.ts";
import { TaskData } from "../data/task.ts";
import { TERMINAL, inInbox, ofTask } from "../logic/status.ts";
import { count, shortId, visible } from "../logic/text.ts";
import { ActionDialog, pathOf, refusal } from "../ui/actions.tsx";
import type { Act } from "../ui/actions.tsx";
import { Decision } from "../ui/decision.tsx";
import { EstimateBar, useEstimate } from "../ui/estimate.tsx";
import { Inspector, Parent, TABS } from "../ui/inspector.tsx";
import type { Tab } from "../ui/inspector.tsx";
import { onKey } from "../ui/keys.ts";
import { Icon, StatusMark } from "../ui/marks.tsx";
import { Ago, At, Copy, ErrorCard, Panel, Said, To, announce } from "../ui/parts.tsx";
import { offered } from "../ui/palette.tsx";
import type { Entry } from "../ui/palette.tsx";
import { Timeline } from "../ui/timeline.tsx";

const MADE_MAX = 5;

export function TaskPage() {
  const { params } = useRoute();
  const id = params.id ?? "";
  const data = useMemo(() => new TaskData(id), [id]);
  useLayoutEffect(() => {
    data.start();
    return () => data.stop();
  }, [data]);
  const gone = data.gone.value;
  if (gone instanceof Refused && gone.status % 1000 === 404) return <div class="page"><div class="empty card"><h1>There is no such task here.</h1><To path="/" class="button">All tasks</To></div></div>;
  const task = data.task.value.value;
  if (task === null) return <div class="page">{gone ? <ErrorCard error={gone} /> : <p class="muted" role="status">Reading…</p>}</div>;
  return <Shown data={data} task={task} />;
}

function useView(data: TaskData, task: Task) {
  const { query, path, route } = useLocation();
  const step = query.step ?? null;
  const asks = task.pause !== null && task.status !== "cancelling" && task.pause.status === "open" && inInbox(task.pause.reason.type) ? task.pause : null;
  const wanted = query.tab as Tab | undefined;
  const known = wanted !== undefined && ([...TABS] as string[]).concat("decide").includes(wanted) ? wanted : undefined;
  const decides = asks !== null && !narrow.value;
  const tab: Tab = known === "decide" && !decides ? "input" : (known ?? (decides && step === null ? "decide" : step === null && task.outputs !== null && TERMINAL.has(task.status) ? "output" : step !== null && (data.step(step) ?? data.view.steps.get(step))?.status === "failed" ? "output" : "input"));
  const go = (change: Record<string, string | null>): void => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(change)) {
      if (value === null) next.delete(name);
      else next.set(name, value);
    }
    const text = next.toString();
    route(path + (text ? `?${text}` : ""), true);
  };
  return { step, tab, asks, gen: query.gen ? Number(query.gen) : null, line: query.line ? Number(query.line) : null, go };
}

function Shown({ data, task }: { data: TaskData; task: Task }) {
  const { step, tab, asks, gen, line, go } = useView(data, task);
  const [act, setAct] = useState<Act | null>(null);
  const said = useEstimate(task);
  const shown = ofTask(task);
  const last = useRef(shown.word);
  useEffect(() => {
    if (last.current !== shown.word) announce(`${task.title}: ${shown.word}`);
    last.current = shown.word;
  }, [shown.word]);
  useLayoutEffect(() => {
    const keys: Record<string, () => void> = {
      p: () => document.querySelector<HTMLButtonElement>("[data-act=pause]:not(:disabled)")?.click(),
      r: () => refusal(task, "retry") === null && setAct({ name: "retry", ...(step ? { step } : {}) }),
      F: () => refusal(task, "fork") === null && setAct({ name: "fork", ...(step ? { step } : {}) }),
      C: () => refusal(task, "cancel") === null && setAct({ name: "cancel" }),
      Escape: () => step !== null && go({ step: null, tab: null }),
      ...Object.fromEntries(TABS.map((one, n) => [String(n + 1), () => go({ tab: one })])),
      "c i": () => void navigator.clipboard.writeText(task.id),
      "c l": () => void navigator.clipboard.writeText(location.href),
      "c c": () => void navigator.clipboard.writeText(`everstep show ${task.id}`),
    };
    return onKey(keys);
  });
  useEffect(() => {
    const acts = MORE.filter(({ action }) => refusal(task, action) === null && task.status !== "pausing").map(({ act, label }): Entry => ({ id: `act-${act}`, label, hint: "this task", act: () => setAct({ name: act, ...(step ? { step } : {}) }) }));
    const steps = (task.steps ?? []).map((one): Entry => ({ id: `step-${one.id}`, label: one.title ?? one.id, hint: "step", act: () => go({ step: one.id, tab: null }) }));
    offered.value = [...acts.filter(({ id }) => id !== "act-pause-now"), ...steps];
    return () => void (offered.value = []);
  }, [task, step]);
  return (
    <div class="task-page">
      <header class="task-head">
        <div class="task-title">
          <To path="/" class="button plain back" title="Tasks"><Icon name="back" /><span class="hidden">Tasks</span></To>
          <h1 class="grow"><Said text={task.title} /></h1>
          <StatusMark shown={shown} />
          <Buttons data={data} task={task} onAct={setAct} />
        </div>
        <p class="task-meta muted small">
          <span class="mono" title={task.id}>{shortId(task.id)}</span> · <To path={`/plans/${encodeURIComponent(task.plan.name)}`}>{visible(task.plan.name)}</To> rev {task.plan.revision}
          {task.started_at && <> · started <At time={task.started_at} /></>}{task.created_by && <> · by {visible(task.created_by.id)} ({task.created_by.via})</>}
          {task.worker && <> · worker <span class="mono">{shortId(task.worker)}</span></>}<Parent task={task} /><Made task={task} /><Generations data={data} task={task} gen={gen} onChoose={(one) => go({ gen: one })} />
        </p>
        <div class="task-progress"><EstimateBar task={task} said={said} /><p>{said.text.includes(" steps done") ? said.text : <><span>{said.done} of {said.total} steps</span>{said.text && <span class="muted"> · {said.text}</span>}</>}</p></div>
        {!TERMINAL.has(task.status) && <p class="because"><Said text={task.explain.text} />{task.explain.next && <span class="muted"> · next: <Said text={task.explain.next} /></span>}</p>}
        <Notes data={data} task={task} onShow={(one) => go({ step: one, tab: "output" })} />
      </header>
      {asks && narrow.value && <div class="phone-decision"><Decision pause={asks} /></div>}
      <div class={`task-body${step !== null || tab !== "input" ? " inspecting" : ""}`}>
        <Panel name="Timeline"><Timeline data={data} selected={step} generation={gen} onSelect={(one) => go({ step: one, tab: tab === "decide" ? null : (new URLSearchParams(location.search).get("tab") ?? null) })} /></Panel>
        <Panel name="Inspector"><Inspector data={data} task={task} step={step} tab={tab} pause={narrow.value ? null : asks} line={line} onLine={(one) => go({ tab: "logs", line: String(one) })} onTab={(one) => go({ tab: one, line: null })} onClose={() => go({ step: null, tab: null, line: null })} onAct={setAct} /></Panel>
      </div>
      {act && <ActionDialog data={data} task={task} act={act} onClose={() => { setAct(null); data.task.stale(); }} />}
    </div>
  );
}

function Generations({ data, task, gen, onChoose }: { data: TaskData; task: Task; gen: number | null; onChoose: (gen: string | null) => void }) {
  void data.version.value; // the journal tells where each began
  const { begun } = data.view;
  if (task.generation < 2) return null;
  return (
    <> · <label class="inline">generation <select value={gen === null ? "" : String(gen)} onChange={(event) => onChoose(event.currentTarget.value || null)}>
      <option value="">all</option>{Array.from({ length: task.generation }, (_, n) => <option key={n} value={String(n + 1)}>{n + 1}{begun.get(n + 1) ? ` (from ${visible(begun.get(n + 1) ?? "")})` : ""}</option>)}
    </select></label></>
  );
}

/** Tasks that were made of this one: forks, undos, children. */
function Made({ task }: { task: Task }) {
  const read = useMemo(() => resource(() => get<Page<Task>>(`/v1/tasks?parent=${task.id}&limit=${MADE_MAX}`)), [task.id]);
  useEffect(() => {
    void read.refresh();
    const end = onEvent((event) => event.type === "task.created" && read.stale());
    return () => {
      end();
      read.stop();
    };
  }, [read]);
  const made = read.value.value?.items ?? [];
  if (!made.length) return null;
  return <> · led to {made.map((one, n) => <span key={one.id}>{n > 0 && ", "}<To path={`/tasks/${one.id}`} class="mono" title={one.title}>{shortId(one.id)}</To></span>)}{read.value.value?.next_cursor ? " and more" : ""}</>;
}

function Notes({ data, task, onShow }: { data: TaskData; task: Task; onShow: (step: string) => void }) {
  void data.version.value;
  const { lost } = data.view;
  const near = Object.entries(task.limits ?? {}).filter(([, level]) => level.max > 0 && level.used / level.max >= 0.8);
  const error = task.error;
  const issues = (task.issues ?? []).filter((one) => one.step !== error?.step); // that one is told above
  const issue = issues[0];
  return (
    <>
      {error && <p class="note bad"><strong class="s-failed">Failed</strong><span class="grow"><Said text={error.message} /> <span class="muted"><Said text={error.what_to_do} /></span></span>{error.step && <button type="button" class="tiny" onClick={() => onShow(error.step ?? "")}>Show</button>}</p>}
      {issue && <p class="note warn"><span class="grow">{count(issues.length, "issue")}: <span class="mono">{visible(issue.step)}</span> <Said text={issue.error?.message ?? issue.reason} />{TERMINAL.has(task.status) ? "" : "; the task goes on"}</span><button type="button" class="tiny" onClick={() => onShow(issue.step)}>Show</button></p>}
      {near.map(([name, level]) => <p key={name} class="note warn">{name.replace("_", " ")}: {level.used.toLocaleString("en")} of {level.max.toLocaleString("en")} used</p>)}
      {task.status === "stalled" && <p class="note warn">Its worker{lost && <> <span class="mono">{shortId(lost)}</span></>} is gone{task.heartbeat_at && <>; last heard of <Ago time={task.heartbeat_at} suffix=" ago" /></>}. Recovery {task.recoveries} of 5 since the last outcome.</p>}
    </>
  );
}

function Buttons({ data, task, onAct }: { data: TaskData; task: Task; onAct: (act: Act) => void }) {
  const busy = useSignal<string | null>(null);
  const error = useSignal<Error | null>(null);
  const used = useSignal<string | null>(null);
  const resumes = task.actions?.includes("resume") ?? false;
  const steer = async (name: "pause" | "resume", body: object = {}): Promise<void> => {
    busy.value = name;
    error.value = null;
    try {
      const reply = await post<Task & { mode_used?: string }>(`${pathOf(task)}/${name}`, body);
      used.value = name === "pause" && (body as { mode?: string }).mode === "immediate" ? `paused: ${reply.mode_used ?? "immediate"}` : null;
      await data.task.refresh();
    } catch (problem) {
      error.value = problem as Error;
    } finally {
      busy.value = null;
    }
  };
  const name = resumes ? "resume" : "pause";
  const why = refusal(task, name);
  const cancel = refusal(task, "cancel");
  const terminal = TERMINAL.has(task.status);
  return (
    <div class="task-actions">
      {!terminal && <button type="button" data-act="pause" disabled={why !== null || busy.value !== null} title={why ?? ""} onClick={() => void steer(name)}>{busy.value === "pause" ? "Pausing…" : busy.value === "resume" ? "Resuming…" : resumes ? "Resume" : "Pause"} <kbd>p</kbd></button>}
      {!terminal && <button type="button" disabled={cancel !== null} title={cancel ?? ""} onClick={() => onAct({ name: "cancel" })}>Cancel…</button>}
      {terminal && <button type="button" disabled={refusal(task, "retry") !== null} title={refusal(task, "retry") ?? ""} onClick={() => onAct({ name: "retry" })}>Retry…</button>}
      <More task={task} onAct={(act) => (act.name === "pause-now" ? void steer("pause", { mode: "immediate" }) : onAct(act))} />
      {used.value && <span class="small muted" role="status">{used.value}</span>}
      {error.value && <ErrorCard error={error.value} />}
    </div>
  );
}

const MORE: readonly { act: Act["name"]; action: string; label: string }[] = [
  { act: "pause-now", action: "pause", label: "Pause now" },
  { act: "retry", action: "retry", label: "Retry from a step…" },
  { act: "fork", action: "fork", label: "Fork…" },
  { act: "patch", action: "patch", label: "Edit remaining steps…" },
  { act: "undo", action: "undo", label: "Undo…" },
];

function More({ task, onAct }: { task: Task; onAct: (act: Act) => void }) {
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    place.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: Event): void => {
      if (!place.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const keys = (event: KeyboardEvent): void => {
    const all = [...(place.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const here = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") {
      event.stopPropagation();
      setOpen(false);
      button.current?.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      all[(here + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length]?.focus();
    } else if (event.key === "Tab") setOpen(false);
  };
  return (
    <div class="menu" ref={place} onKeyDown={keys}>
      <button type="button" ref={button} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>More <Icon name="down" /></button>
      {open && (
        <div class="menu-items card">
          <div role="menu" aria-label="More">
          {MORE.map(({ act, action, label }) => {
            const why = refusal(task, action);
            return <button type="button" role="menuitem" key={act} tabIndex={-1} aria-disabled={why !== null} title={why ?? ""} onClick={() => { if (why === null) { setOpen(false); button.current?.focus(); onAct({ name: act }); } }}><span>{label}</span>{why && <span class="small muted">{why}</span>}</button>;
          })}
          </div>
          <div class="menu-copy"><Copy text={task.id} label="Copy id" /><Copy text={`everstep show ${task.id}`} label="Copy command" /></div>
        </div>
      )}
    </div>
  );
}

