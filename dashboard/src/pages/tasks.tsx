// What goes on now, and what went on before. Nothing stands still without a "because".

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Task } from "../data/api.ts";
import { at } from "../data/base.ts";
import { now } from "../data/clock.ts";
import { needsYou } from "../data/inbox.ts";
import { onEvent, onReturn } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import { get } from "../data/session.ts";
import { TaskList, retries } from "../data/tasks.ts";
import type { Listed } from "../data/tasks.ts";
import { because } from "../logic/estimate.ts";
import { inWords, parse } from "../logic/filter.ts";
import { hold } from "../logic/held.ts";
import type { Groups as Ids } from "../logic/held.ts";
import { TERMINAL, ofTask } from "../logic/status.ts";
import type { Mark } from "../logic/status.ts";
import { shortId } from "../logic/text.ts";
import { EstimateBar, useEstimate } from "../ui/estimate.tsx";
import { Glyph } from "../ui/marks.tsx";
import { Ago, Copy, ErrorCard, Panel, Said, To } from "../ui/parts.tsx";
import { useVirtual } from "../ui/virtual.ts";

interface Now {
  tasks: { now: Record<string, number>; ended: Record<string, number> };
}

export function TasksPage() {
  const { query: asked, route } = useLocation();
  const text = asked.q ?? "";
  const tasks = useMemo(() => new TaskList(parse(text)), [text]);
  const list = tasks.read;
  const stats = useMemo(() => resource(() => get<Now>("/v1/stats?range=24h"), 5000), []);
  useLayoutEffect(() => {
    void list.refresh();
    void stats.refresh();
    const ends = [onEvent(() => { list.stale(); stats.stale(); }), onReturn(() => { list.stale(); stats.stale(); })];
    return () => {
      for (const end of ends) end();
      list.stop();
    };
  }, [list]);

  const find = (words: string): void => route(at(words ? `/?q=${encodeURIComponent(words)}` : "/"));
  const toggle = (token: string): void => find(text.includes(token) ? text.replace(token, "").trim() : `${text} ${token}`.trim());
  const found = list.value.value;
  const nothing = found !== null && !found.needs.length && !found.active.length && !found.ended.length;
  return (
    <div class="page">
      <div class="page-head">
        <h1>Tasks</h1>
        <FilterBox text={text} onFind={find} />
        <To path="/plans" class="button primary">Start…</To>
      </div>
      <Chips now={stats.value.value} listed={found} text={text} onToggle={toggle} />
      {list.error.value && <ErrorCard error={list.error.value} />}
      {nothing && (text ? <NoMatch text={text} onClear={() => find("")} /> : <NoTasks />)}
      {found && (
        <Panel name="Tasks">
          <Groups key={text} found={found} onMore={() => void tasks.more()} />
        </Panel>
      )}
    </div>
  );
}

function FilterBox({ text, onFind }: { text: string; onFind: (text: string) => void }) {
  return (
    <form class="filter" role="search" onSubmit={(event) => {
      event.preventDefault();
      onFind(String(new FormData(event.currentTarget).get("q") ?? "").trim());
    }}>
      <input type="search" name="q" key={text} defaultValue={text} data-key="/" aria-label="Filter tasks" placeholder="Filter: status:failed, any words" autocomplete="off" spellcheck={false} />
    </form>
  );
}

const CHIPS: readonly { word: string; token: string; mark: Mark; count: (now: Now, listed: Listed) => number }[] = [
  { word: "needs you", token: "needs:you", mark: "paused", count: () => needsYou.value },
  { word: "running", token: "status:running", mark: "running", count: (now) => now.tasks.now.running ?? 0 },
  { word: "retrying", token: "status:retrying", mark: "retrying", count: (_now, listed) => listed.active.filter(retries).length },
  { word: "stalled", token: "status:stalled", mark: "stalled", count: (now) => now.tasks.now.stalled ?? 0 },
  { word: "failed 24 h", token: "status:failed since:24h", mark: "failed", count: (now) => now.tasks.ended.failed ?? 0 },
];

function Chips({ now, listed, text, onToggle }: { now: Now | null; listed: Listed | null; text: string; onToggle: (token: string) => void }) {
  return (
    <div class="chips" role="group" aria-label="Filters">
      {CHIPS.map(({ word, token, mark, count }) => {
        const n = now === null || listed === null ? null : count(now, listed);
        return (
          <button type="button" key={token} class="chip" aria-pressed={text.includes(token)} onClick={() => onToggle(token)}>
            <Glyph mark={mark} />{word}{n !== null && <b>{n}</b>}
          </button>
        );
      })}
    </div>
  );
}

const GROUPS = [["needs", "Needs you"], ["active", "Active"], ["ended", "Finished"]] as const;
const ROW_PX = 66;
const NEAR_PX = 800;

/** No row moves under a pointer, under the focus, or under the eyes of whoever has scrolled: what arrives waits in a bar. */
function useHeld(found: Listed, place: RefObject<HTMLElement | null>): { groups: { name: string; tasks: Task[] }[]; fresh: number; release: () => void } {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const shown = useRef<Ids>({});
  const known = useRef(new Map<string, Task>());
  for (const [group] of GROUPS) for (const task of found[group]) known.current.set(task.id, task);
  const latest = Object.fromEntries(GROUPS.map(([group]) => [group, found[group].map((task) => task.id)]));
  const here = place.current;
  const isHeld = here !== null && (here.matches(":hover") || here.contains(document.activeElement) || (here.closest("#content")?.scrollTop ?? 0) > 0);
  const { ids, fresh } = isHeld ? hold(shown.current, latest) : { ids: latest, fresh: 0 };
  shown.current = ids;
  const groups = GROUPS.map(([group, name]) => ({ name, tasks: (ids[group] ?? []).map((id) => known.current.get(id)).filter((task): task is Task => task !== undefined) }));
  const release = (): void => {
    shown.current = latest;
    again(0);
  };
  return { groups, fresh, release };
}

function Groups({ found, onMore }: { found: Listed; onMore: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const { groups, fresh, release } = useHeld(found, place);
  const [, again] = useReducer((n: number) => n + 1, 0);
  const away = (): void => void setTimeout(() => again(0)); // whoever leaves sees what has come meanwhile
  const end = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (end.current === null) return;
    const near = new IntersectionObserver(([seen]) => seen?.isIntersecting && onMore(), { root: document.querySelector("#content"), rootMargin: `0px 0px ${NEAR_PX}px` });
    near.observe(end.current);
    return () => near.disconnect();
  }, [found]);
  return (
    <div class="groups" ref={place} onPointerLeave={away} onFocusOut={away}>
      <div class="new-bar">{fresh > 0 && <button type="button" class="chip" onClick={() => { release(); document.querySelector("#content")?.scrollTo(0, 0); }}>{fresh} new</button>}</div>
      {groups.map(({ name, tasks }) => tasks.length > 0 && <Group key={name} name={name} tasks={tasks} />)}
      {found.more && <button type="button" ref={end} onClick={onMore}>Show more</button>}
    </div>
  );
}

function Group({ name, tasks }: { name: string; tasks: Task[] }) {
  const list = useRef<HTMLUListElement>(null);
  const [focused, setFocused] = useState(-1);
  const virtual = useVirtual(list, tasks.length, ROW_PX, { keep: focused, inside: "#content", key: (index) => tasks[index]?.id ?? index });
  return (
    <section class="section" aria-label={name}>
      <h2>{name} <span>{tasks.length}</span></h2>
      <ul class="rows" ref={list} style={{ height: `${virtual.height + 2}px` }} onFocusOut={() => setFocused(-1)}>
        {virtual.items.map(({ index, start }) => {
          const task = tasks[index];
          return task && <TaskRow key={task.id} task={task} index={index} of={tasks.length} top={start} measure={virtual.measure} onFocus={() => setFocused(index)} />;
        })}
      </ul>
    </section>
  );
}

interface RowProps {
  task: Task;
  index: number;
  of: number;
  top: number;
  measure: (row: HTMLElement | null) => void;
  onFocus: () => void;
}

function TaskRow({ task, index, of, top, measure, onFocus }: RowProps) {
  const said = useEstimate(task);
  const shown = ofTask(task);
  const ended = TERMINAL.has(task.status);
  const asks = shown.word === "needs you";
  const short = ended || task.status === "paused" ? shown.word : (because(task.explain.waiting_on, now.value) ?? said.short);
  return (
    <li class="task-row" data-row={task.id} data-index={index} ref={measure} aria-posinset={index + 1} aria-setsize={of} style={{ transform: `translateY(${top}px)` }} onFocusIn={onFocus}>
      <Glyph mark={shown.mark} live />
      <To path={`/tasks/${task.id}`} class="title cut"><Said text={task.title} /><span class="hidden">, {shown.word}</span></To>
      <span class="progress"><span>{said.done}/{said.total}</span><EstimateBar task={task} said={said} /></span>
      <span class="left">
        {asks && task.pause ? (
          <><span class="text s-paused">waiting for you · <Ago time={task.pause.opened_at} /></span><To path={`/inbox/${task.pause.id}`} class="button">Review</To></>
        ) : (
          <span class={`text cut ${ended ? `s-${shown.mark}` : task.status === "paused" ? "muted" : "muted going"}`} title={ended ? "" : said.text}>{short}</span>
        )}
      </span>
      <span class="because cut" title={task.explain.text}><Said text={task.explain.text} /></span>
      <span class="meta"><span class="mono">{shortId(task.id)}</span> · <Ago time={task.updated_at} suffix=" ago" /></span>
    </li>
  );
}

const NoTasks = () => (
  <div class="empty card">
    <p>No tasks yet.</p>
    <p><code>everstep demo</code> <Copy text="everstep demo" /></p>
    <p><code>everstep run plan.yaml</code> <Copy text="everstep run plan.yaml" /></p>
  </div>
);

const NoMatch = ({ text, onClear }: { text: string; onClear: () => void }) => (
  <div class="empty card"><p>No task with {inWords(parse(text))}.</p><button type="button" onClick={onClear}>Clear</button></div>
);
