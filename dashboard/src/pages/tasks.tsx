// What goes on now, and what went on before. Nothing stands still without a "because".

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Page, Task } from "../data/api.ts";
import { at } from "../data/base.ts";
import { needsYou } from "../data/inbox.ts";
import { now } from "../data/clock.ts";
import { onEvent, onReturn } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import { get } from "../data/session.ts";
import { because } from "../logic/estimate.ts";
import { inWords, parse } from "../logic/filter.ts";
import type { Filter } from "../logic/filter.ts";
import { TERMINAL, ofTask } from "../logic/status.ts";
import { shortId } from "../logic/text.ts";
import { EstimateBar, useEstimate } from "../ui/estimate.tsx";
import { Glyph } from "../ui/marks.tsx";
import type { Mark } from "../logic/status.ts";
import { Ago, Copy, ErrorCard, Panel, Said, To } from "../ui/parts.tsx";

const ACTIVE = "queued,running,pausing,paused,stalled,cancelling";
const ENDED = "completed,failed,cancelled";
const NEEDS_MAX = 20;
const ACTIVE_MIN = 200;
const PAGE = 50;
const PAGE_MAX = 500;

interface Listed {
  needs: Task[];
  active: Task[];
  ended: Task[];
  more: string | null;
}

interface Now {
  tasks: { now: Record<string, number>; ended: Record<string, number> };
}

function query(filter: Filter, more: Record<string, string>): string {
  return new URLSearchParams({ ...filter, ...more } as Record<string, string>).toString();
}

const RETRYING = "retrying"; // no status of a task: it runs, and waits for its next try
const retries = (task: Task): boolean => ofTask(task).mark === RETRYING;

/** Statuses that are asked for and possible in a group; null: none. */
function among(filter: Filter, group: string): string | null {
  if (filter.status === undefined) return group;
  const wanted = filter.status.split(",").map((one) => (one === RETRYING ? "running" : one));
  const known = new Set(`${ACTIVE},${ENDED}`.split(","));
  if (wanted.some((one) => !known.has(one))) return filter.status; // let the server say what is wrong
  return group.split(",").filter((one) => wanted.includes(one)).join(",") || null;
}

/** The first `many` of a group, page by page. */
async function first(filter: Filter, group: string, many: number, more: Record<string, string> = {}): Promise<Page<Task>> {
  const status = among(filter, group);
  const items: Task[] = [];
  let cursor: string | null = null;
  if (status === null) return { items, next_cursor: null };
  do {
    const limit = String(Math.min(PAGE_MAX, many - items.length));
    const page: Page<Task> = await get<Page<Task>>(`/v1/tasks?${query(filter, { status, limit, ...more, ...(cursor === null ? {} : { cursor }) })}`);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null && items.length < many);
  return { items, next_cursor: cursor };
}

async function read(filter: Filter, pages: number): Promise<Listed> {
  const [needs, active, done] = await Promise.all([
    first(filter, ACTIVE, NEEDS_MAX, { needs_you: "1" }),
    first(filter, ACTIVE, ACTIVE_MIN + (pages - 1) * PAGE),
    filter.needs_you ? { items: [], next_cursor: null } : first(filter, ENDED, pages * PAGE),
  ]);
  const mine = new Set(needs.items.map((task) => task.id));
  const only = filter.status === RETRYING ? retries : () => true;
  return { needs: needs.items, active: active.items.filter((task) => !mine.has(task.id) && only(task)), ended: done.items, more: active.next_cursor ?? done.next_cursor };
}

export function TasksPage() {
  const { query: asked, route } = useLocation();
  const text = asked.q ?? "";
  const pages = useSignal(1);
  const list = useMemo(() => resource(() => read(parse(text), pages.value), 700), [text]);
  const stats = useMemo(() => resource(() => get<Now>("/v1/stats?range=24h"), 5000), []);
  useEffect(() => {
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
          <Group name="Needs you" tasks={found.needs} />
          <Group name="Active" tasks={found.active} arrivals />
          <Group name="Finished" tasks={found.ended} arrivals />
          {found.more && <button type="button" onClick={() => { pages.value += 1; void list.refresh(); }}>Show more</button>}
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
      <input type="search" name="q" key={text} defaultValue={text} data-key="/" aria-label="Filter tasks" placeholder="Filter: status:failed plan:brief or any words" autocomplete="off" spellcheck={false} />
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

/** What arrives while somebody points at the list waits in a bar: no row moves under a hand. */
function Group({ name, tasks, arrivals = false }: { name: string; tasks: Task[]; arrivals?: boolean }) {
  const shown = useSignal<string[]>(tasks.map((task) => task.id));
  const held = useSignal(false);
  const place = useRef<HTMLElement>(null);
  const ids = tasks.map((task) => task.id).join();
  const latest = useSignal(ids);
  latest.value = ids;
  useSignalEffect(() => {
    const wanted = latest.value ? latest.value.split(",") : [];
    if (!held.value || !arrivals) shown.value = wanted;
    else shown.value = shown.peek().filter((id) => wanted.includes(id));
  });
  const fresh = useComputed(() => (latest.value ? latest.value.split(",").filter((id) => !shown.value.includes(id)).length : 0));
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const rows = shown.value.map((id) => byId.get(id)).filter((task): task is Task => task !== undefined);
  if (!rows.length && !fresh.value) return null;
  const release = (): void => {
    if (!place.current?.matches(":hover") && !place.current?.contains(document.activeElement)) held.value = false;
  };
  return (
    <section class="section" ref={place} aria-label={name} onPointerEnter={() => (held.value = true)} onPointerLeave={() => setTimeout(release)}
      onFocusIn={() => (held.value = true)} onFocusOut={() => setTimeout(release)}>
      <h2>{name} <span>{rows.length}</span></h2>
      {fresh.value > 0 && <button type="button" class="chip new-bar" onClick={() => (shown.value = latest.value.split(","))}>{fresh.value} new</button>}
      <ul class="rows">{rows.map((task) => <TaskRow key={task.id} task={task} />)}</ul>
    </section>
  );
}

export function TaskRow({ task }: { task: Task }) {
  const said = useEstimate(task);
  const shown = ofTask(task);
  const ended = TERMINAL.has(task.status);
  const asks = shown.word === "needs you";
  const short = ended || task.status === "paused" ? shown.word : (because(task.explain.waiting_on, now.value) ?? said.short);
  return (
    <li class="task-row" data-row={task.id}>
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
