// What is unwell, worst first; then everything else in figures with words.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Refused } from "../client/client.ts";
import type { ApiError, Attempt, Breaker, Health, Page, Tool, Worker } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { onNotice, onReturn } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import type { Resource } from "../data/resource.ts";
import { get, may, post } from "../data/session.ts";
import { bytes, count, shortId, visible } from "../logic/text.ts";
import { age, instant, length } from "../logic/times.ts";
import { Glyph } from "../ui/marks.tsx";
import { Ago, Dialog, ErrorCard, Meter, Panel, Said, To } from "../ui/parts.tsx";

const EVERY_MS = 3000;

interface All {
  health: Resource<Health>;
  workers: Resource<Page<Worker>>;
  breakers: Resource<Page<Breaker>>;
  tools: Resource<Page<Tool>>;
}

function worst(health: Health, workers: Worker[] | null, breakers: Breaker[]): { bad: boolean; text: string } {
  const open = breakers.filter((one) => one.state === "open");
  const tasks = health.store?.tasks ?? {};
  const active = ["queued", "running", "pausing", "paused", "stalled", "cancelling"].reduce((sum, name) => sum + (tasks[name] ?? 0), 0);
  const live = workers?.filter((one) => one.status !== "dead").length;
  if (health.status !== "ok") return { bad: true, text: health.reason ?? `The engine is ${health.status}.` };
  if (health.halt) return { bad: true, text: `Everything is halted by ${health.halt.by}${health.halt.note ? `: ${health.halt.note}` : ""}.` };
  if (live === 0) return { bad: true, text: "No worker lives: nothing is carried on." };
  if (open.length) return { bad: true, text: `${count(open.length, "breaker is", "breakers are")} open: ${open.map((one) => one.target).join(", ")}.` };
  if ((tasks.stalled ?? 0) > 0) return { bad: true, text: `${count(tasks.stalled ?? 0, "task waits", "tasks wait")} to be carried on.` };
  const size = health.store?.size_bytes;
  return { bad: false, text: `All well: ${live === undefined ? "" : `${count(live, "worker")}, `}${count(active, "active task")}${size ? `, store ${bytes(size)}` : ""}.` };
}

export function HealthPage() {
  const all: All = useMemo(() => ({
    health: resource(() => get<Health>("/v1/health")), workers: resource(() => get<Page<Worker>>("/v1/workers")),
    breakers: resource(() => get<Page<Breaker>>("/v1/breakers")), tools: resource(() => get<Page<Tool>>("/v1/tools")),
  }), []);
  useEffect(() => {
    const each = Object.values(all) as Resource<unknown>[];
    const read = (): void => {
      for (const one of each) one.stale();
    };
    read();
    const timer = setInterval(() => {
      for (const one of [all.health, all.breakers, all.workers]) one.stale();
    }, EVERY_MS);
    const ends = [onNotice(read), onReturn(read)];
    return () => {
      clearInterval(timer);
      for (const end of ends) end();
      for (const one of each) one.stop();
    };
  }, []);
  const health = all.health.value.value;
  const breakers = all.breakers.value.value?.items ?? [];
  if (!health) return <div class="page"><h1>Health</h1>{all.health.error.value ? <ErrorCard error={all.health.error.value} /> : <p class="muted" role="status">Reading…</p>}</div>;
  const said = worst(health, all.workers.value.value?.items ?? null, breakers);
  return (
    <div class="page">
      <div class="page-head"><h1>Health</h1><span class="muted small">version {health.version}</span></div>
      <p class={`verdict card ${said.bad ? "bad" : ""}`}><Glyph mark={said.bad ? "stalled" : "completed"} /><Said text={said.text} /></p>
      <div class="columns">
        <Card name="Breakers" read={all.breakers}>{breakers.length ? <ul class="list">{breakers.map((one) => <OneBreaker key={one.id} breaker={one} onReset={() => all.breakers.stale()} />)}</ul> : <p class="muted">Every breaker is closed.</p>}</Card>
        <Card name="Workers" read={all.workers}><Workers workers={all.workers.value.value?.items ?? []} /></Card>
        <Card name="Work" read={all.health}><Work health={health} /></Card>
        <Card name="Store" read={all.health}><Store health={health} /></Card>
      </div>
      <Card name="Tools" read={all.tools}><Tools tools={all.tools.value.value?.items ?? []} onCheck={() => all.tools.stale()} /></Card>
    </div>
  );
}

function Card({ name, read, children }: { name: string; read: Resource<unknown>; children: ComponentChildren }) {
  const error = read.error.value;
  const scope = error instanceof Refused && error.status === 403 ? String(error.details.scope ?? "") : null;
  return <section class="card panel" aria-label={name}><h2>{name}</h2><Panel name={name}>{scope !== null ? <p class="muted">This needs a token with the scope <code>{scope}</code>.</p> : error ? <ErrorCard error={error} /> : children}</Panel></section>;
}

const STATES = { closed: "closed: calls go through", open: "open: calls are held", half_open: "half open: one call may try" } as const;

function OneBreaker({ breaker, onReset }: { breaker: Breaker; onReset: () => void }) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const next = instant(breaker.retry_at);
  const reset = async (): Promise<void> => {
    try {
      await post(`/v1/breakers/${encodeURIComponent(breaker.id)}/reset`);
      setAsking(false);
      onReset();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <li>
      <p class="line"><Glyph mark={breaker.state === "closed" ? "completed" : breaker.state === "open" ? "failed" : "retrying"} /><strong class="grow wrap"><Said text={breaker.target} /></strong><button type="button" class="tiny" disabled={!may("admin") || breaker.state === "closed"} title={may("admin") ? "" : "needs the scope admin"} onClick={() => setAsking(true)}>Reset…</button></p>
      <p class="small">{STATES[breaker.state]}; {count(breaker.failures, "failure")}{breaker.opened_at && <>, open for <Ago time={breaker.opened_at} /></>}{next !== null && next > now.value && `, next try in ${age(next - now.value)}`}</p>
      {breaker.last_error && <p class="small muted">{breaker.state === "closed" ? "last" : "because"}: <Said text={breaker.last_error} /></p>}
      {breaker.held_steps.length > 0 && <p class="small">holds {breaker.held_steps.slice(0, 5).map((one) => <To key={one.task + one.step} path={`/tasks/${one.task}?step=${encodeURIComponent(one.step)}`} class="held mono">{visible(one.step)}</To>)}{breaker.held_steps.length > 5 && ` and ${breaker.held_steps.length - 5} more`}</p>}
      {asking && <Dialog title={`Reset the breaker of ${breaker.target}?`} onClose={() => setAsking(false)}><p>Held calls go through at once. If the other side is still unwell, it opens again.</p>{error && <ErrorCard error={error} />}<footer><button type="button" autofocus onClick={() => setAsking(false)}>Leave it</button><button type="button" class="primary" onClick={() => void reset()}>Reset</button></footer></Dialog>}
    </li>
  );
}

const Workers = ({ workers }: { workers: Worker[] }) => (
  <ul class="list">
    {[...workers].sort((a, b) => Number(a.status === "dead") - Number(b.status === "dead")).slice(0, 8).map((one) => (
      <li key={one.id}>
        <p class="line"><Glyph mark={one.status === "live" ? "completed" : one.status === "dead" ? "failed" : "paused"} /><strong class="grow"><Said text={one.name} /> <span class="mono small muted">{shortId(one.id)}</span></strong><span class="small muted">{one.status}</span></p>
        <p class="small muted">heartbeat <Ago time={one.heartbeat_at} suffix=" ago" /> · {count(one.tasks, "task")} · {one.version}</p>
        {one.status === "dead" && <Recovered worker={one} />}
      </li>
    ))}
    {!workers.length && <li class="muted">None.</li>}
  </ul>
);

const LOST = "/v1/errors?code=worker_lost&limit=50";

/** Tasks whose calls this worker left behind: by the attempts that were abandoned. */
async function leftBy(worker: Worker): Promise<string[]> {
  const lost = (await get<Page<ApiError & { task: string; at: string }>>(LOST)).items.filter((one) => one.at >= worker.heartbeat_at);
  const made = await Promise.all(lost.map((one) => get<Attempt>(`/v1/tasks/${one.task}/steps/${encodeURIComponent(one.step ?? "")}/attempts/${one.attempt}`).catch(() => null)));
  return [...new Set(lost.filter((_, n) => made[n]?.worker === worker.id).map((one) => one.task))];
}

function Recovered({ worker }: { worker: Worker }) {
  const [found, setFound] = useState<string[] | Error | null>(null);
  const look = (open: boolean): void => void (open && found === null && leftBy(worker).then(setFound, setFound));
  return (
    <details class="small" onToggle={(event) => look(event.currentTarget.open)}>
      <summary>Tasks recovered from it</summary>
      {found instanceof Error ? <ErrorCard error={found} /> : found === null ? <p class="muted">Looking…</p> : !found.length ? <p class="muted">It left no call behind.</p>
        : <p>{found.map((id) => <To key={id} path={`/tasks/${id}`} class="held mono">{shortId(id)}</To>)}</p>}
    </details>
  );
}

function Work({ health }: { health: Health }) {
  return (
    <div class="meters">
      {health.load && <Meter label="Tasks in work" used={health.load.tasks} max={health.load.max} />}
      {Object.entries(health.pools ?? {}).map(([name, pool]) => <Meter key={name} label={`Pool ${name}${pool.waiting ? `, ${pool.waiting} waiting` : ""}`} used={pool.taken} max={pool.size} />)}
      {Object.entries(health.rates ?? {}).map(([name, rate]) => <Meter key={name} label={`Rate ${visible(name)}, calls in ${length(rate.period_s * 1000)}${rate.waiting ? `, ${rate.waiting} waiting` : ""}`} used={rate.used} max={rate.max} />)}
      {health.queue && health.limits?.live_tasks && <Meter label="Queued" used={health.queue.queued} max={health.limits.live_tasks} />}
      <dl class="facts">
        {health.queue && <div><dt>Stalled</dt><dd>{health.queue.stalled}</dd></div>}
        {health.streams && <div><dt>Streams</dt><dd>{count(health.streams.open, "client")}, {health.streams.dropped} dropped</dd></div>}
      </dl>
    </div>
  );
}

const Store = ({ health }: { health: Health }) => (
  <dl class="facts">
    <div><dt>Kind</dt><dd>{health.store?.kind ?? "unknown"}</dd></div>
    <div><dt>Durability</dt><dd>{health.durability === "power" ? "survives a power cut" : health.durability === "process" ? "survives a killed process" : health.durability}</dd></div>
    {health.store?.size_bytes ? <div><dt>Size</dt><dd>{bytes(health.store.size_bytes)}</dd></div> : null}
    {health.store?.events ? <div><dt>Events</dt><dd>{health.store.events.toLocaleString("en")}</dd></div> : null}
    {typeof health.store?.commit_p95_s === "number" && <div><dt>Commits</dt><dd>95 % within {length(health.store.commit_p95_s * 1000)}</dd></div>}
    <div><dt>Schema</dt><dd>{health.store?.schema_version}</dd></div>
    <div><dt>Recovered</dt><dd>{count(health.recovery?.recovered ?? 0, "task")} at the last start</dd></div>
  </dl>
);

const HEALTH = { healthy: "completed", degraded: "retrying", unhealthy: "failed", unknown: "queued" } as const;

function Tools({ tools, onCheck }: { tools: Tool[]; onCheck: () => void }) {
  const [text, setText] = useState("");
  const shown = tools.filter((one) => one.name.includes(text));
  return (
    <>
      <input type="search" aria-label="Filter tools" placeholder="Filter" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Tools"><table>
        <thead><tr><th>Tool</th><th>Effect</th><th>Health</th><th class="n">Latency</th><th><span class="hidden">Check</span></th></tr></thead>
        <tbody>{shown.slice(0, 100).map((one) => (
          <tr key={one.name}><td class="mono">{visible(one.name)}</td><td>{one.effect}</td><td><Glyph mark={HEALTH[one.health.status as keyof typeof HEALTH] ?? "queued"} /> {one.health.status} <span class="muted small"><Said text={one.health.detail} /></span></td><td class="n">{one.health.latency_s === null ? "—" : `${Math.round(one.health.latency_s * 1000)} ms`}</td>
            <td><button type="button" class="tiny plain" disabled={!may("write")} aria-label={`Check ${one.name}`} onClick={() => void post(`/v1/tools/${encodeURIComponent(one.name)}/health`).then(onCheck, () => undefined)}>Check</button></td></tr>
        ))}</tbody>
      </table></div>
    </>
  );
}
