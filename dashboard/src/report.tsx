// One task in one file that needs no server: everything it shows stands in the document, as text.

import { render } from "preact";
import { useState } from "preact/hooks";
import { LocationProvider } from "preact-iso";
import type { JournalEvent } from "./client/rules.ts";
import type { Step, Task } from "./data/api.ts";
import { readFrom, signedOut } from "./data/session.ts";
import { TaskData } from "./data/task.ts";
import { ofTask } from "./logic/status.ts";
import { shortId, visible } from "./logic/text.ts";
import { EstimateBar, useEstimate } from "./ui/estimate.tsx";
import { Inspector } from "./ui/inspector.tsx";
import type { Tab } from "./ui/inspector.tsx";
import { Logo, StatusMark } from "./ui/marks.tsx";
import { At, Said } from "./ui/parts.tsx";
import { Timeline } from "./ui/timeline.tsx";
import "./style/tokens.css";
import "./style/base.css";
import "./style/tasks.css";
import "./style/task.css";
import "./style/inbox.css";
import "./style/report.css";

interface Report {
  made_at: string;
  task: Task;
  steps: Step[];
  events: JournalEvent[];
  logs: unknown[];
}

const report = JSON.parse(document.querySelector("#report")?.textContent ?? "null") as Report;
const steps = new Map(report.steps.map((step) => [step.id, step]));

/** What a page would ask the server for. */
readFrom((path) => {
  const asked = new URL(path, "http://file.invalid");
  const step = /\/steps\/(.+)$/.exec(asked.pathname)?.[1];
  if (step !== undefined) return steps.get(decodeURIComponent(step));
  if (asked.pathname.endsWith("/events")) return { events: report.events.slice(Number(asked.searchParams.get("after") ?? 0)) };
  if (asked.pathname.endsWith("/logs")) {
    const of = asked.searchParams.get("step");
    const level = asked.searchParams.get("level");
    const after = Number(asked.searchParams.get("after") ?? 0);
    const lines = (report.logs as { n: number; step: string | null; level: string | null }[]).filter((line) => line.n > after && (of === null || line.step === of) && (level === null || line.level === level));
    const tail = asked.searchParams.get("tail");
    const items = tail === null ? lines.slice(0, Number(asked.searchParams.get("limit"))) : lines.slice(-Number(tail));
    return { items, next_after: items.at(-1)?.n ?? after };
  }
  return undefined;
});

function Page({ data, task }: { data: TaskData; task: Task }) {
  const [step, setStep] = useState<string | null>(null);
  const [tab, setTab] = useState<Tab>("input");
  const said = useEstimate(task);
  return (
    <div class="task-page report">
      <header class="task-head">
        <div class="task-title"><Logo /><h1 class="grow"><Said text={task.title} /></h1><StatusMark shown={ofTask(task)} /></div>
        <p class="task-meta muted small"><span class="mono">{shortId(task.id)}</span> · {visible(task.plan.name)} rev {task.plan.revision}{task.started_at && <> · started <At time={task.started_at} /></>}{task.created_by && <> · by {visible(task.created_by.id)} ({task.created_by.via})</>} · as of <At time={report.made_at} /></p>
        <div class="task-progress"><EstimateBar task={task} said={said} /><p>{said.done} of {said.total} steps <span class="muted"><Said text={task.explain.text} /></span></p></div>
        {task.error && <p class="note bad"><strong class="s-failed">Failed</strong><span class="grow"><Said text={task.error.message} /> <span class="muted"><Said text={task.error.what_to_do} /></span></span></p>}
      </header>
      <div class="task-body">
        <Timeline data={data} selected={step} generation={null} onSelect={setStep} />
        <Inspector data={data} task={{ ...task, actions: [] }} step={step} tab={tab} pause={null} onTab={setTab} onClose={() => setStep(null)} />
      </div>
    </div>
  );
}

const place = document.querySelector("#app");
if (place && report) {
  signedOut.value = false;
  const data = TaskData.of(report.task, report.events);
  render(<LocationProvider><Page data={data} task={report.task} /></LocationProvider>, place);
}
