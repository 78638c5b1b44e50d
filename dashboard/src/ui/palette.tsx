// Find and do anything: places, tasks, plans, what waits, and what may be done here.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Page, PlanRow, Task } from "../data/api.ts";
import { at } from "../data/base.ts";
import { waiting } from "../data/inbox.ts";
import { get } from "../data/session.ts";
import { ofTask } from "../logic/status.ts";
import { visible } from "../logic/text.ts";
import { Dialog } from "./parts.tsx";

export interface Entry {
  id: string;
  label: string;
  hint: string;
  act: () => void;
}

/** What the page that is open has to offer beside its buttons. */
export const offered = signal<readonly Entry[]>([]);

const PLACES = [["/", "Tasks"], ["/inbox", "Inbox"], ["/plans", "Plans"], ["/health", "Health"], ["/stats", "Stats"]] as const;

export function Palette({ onClose, commands }: { onClose: () => void; commands: readonly Entry[] }) {
  const { route } = useLocation();
  const [text, setText] = useState("");
  const [tasks, setTasks] = useState<Task[]>([]);
  const [plans, setPlans] = useState<PlanRow[]>([]);
  const [here, setHere] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    void get<Page<PlanRow>>("/v1/plans").then((page) => setPlans(page.items), () => undefined);
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => void get<Page<Task>>(`/v1/tasks?limit=8${text ? `&q=${encodeURIComponent(text)}` : ""}`).then((page) => setTasks(page.items), () => undefined), text ? 150 : 0);
    return () => clearTimeout(timer);
  }, [text]);
  const go = (path: string) => () => route(at(path));
  const wanted = text.toLowerCase();
  const found = useMemo(() => {
    const buttons = [...document.querySelectorAll<HTMLButtonElement>(".task-actions button:not(:disabled, [aria-haspopup])")].map((one): Entry => ({ id: `act-${one.textContent}`, label: (one.firstChild?.textContent ?? "").trim(), hint: "this task", act: () => one.click() }));
    const all: Entry[] = [
      ...buttons, ...PLACES.map(([path, name]): Entry => ({ id: path, label: name, hint: "place", act: go(path) })), ...commands,
      ...(waiting.value ?? []).slice(0, 20).map((pause): Entry => ({ id: pause.id, label: pause.title, hint: "needs you", act: go(`/inbox/${pause.id}`) })),
      ...offered.value,
      ...plans.map((plan): Entry => ({ id: `plan-${plan.name}`, label: `Start ${plan.name}`, hint: "plan", act: go(`/plans/${encodeURIComponent(plan.name)}`) })),
    ].filter((one) => one.label.toLowerCase().includes(wanted) || one.hint.includes(wanted));
    return [...all.slice(0, wanted ? 12 : 9), ...tasks.map((task): Entry => ({ id: task.id, label: task.title, hint: ofTask(task).word, act: go(`/tasks/${task.id}`) }))];
  }, [wanted, tasks, plans]);
  const choose = (entry: Entry | undefined): void => {
    if (!entry) return;
    onClose();
    setTimeout(entry.act);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setHere((here + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(found[here]);
    }
  };
  return (
    <Dialog title="Find" onClose={onClose}>
      <input ref={field} type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={found[here] ? `found-${here}` : undefined} aria-label="Find tasks, plans and actions" placeholder="A task, a plan, an action…" value={text}
        onInput={(event) => { setText(event.currentTarget.value); setHere(0); }} onKeyDown={keys} autocomplete="off" spellcheck={false} />
      <ul class="found" id="found" role="listbox" aria-label="Found">
        {found.map((one, n) => <li key={one.id} id={`found-${n}`} role="option" aria-selected={n === here} onPointerMove={() => setHere(n)} onClick={() => choose(one)}><span class="grow cut">{visible(one.label)}</span><span class="small muted">{one.hint}</span></li>)}
        {!found.length && <li class="muted" role="option" aria-selected="false">Nothing with this.</li>}
      </ul>
    </Dialog>
  );
}
