// How it went: outcomes over time, lengths per plan and tool, what is slow or getting worse, and how good estimates were.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso";
import { at } from "../data/base.ts";
import { onEvent } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import { get, raw } from "../data/session.ts";
import { visible } from "../logic/text.ts";
import { length } from "../logic/times.ts";
import { Download } from "../ui/json.tsx";
import { ErrorCard, Panel } from "../ui/parts.tsx";

interface Row {
  plan?: string;
  step?: string;
  tool?: string;
  n: number;
  success: number | null;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  total_s: number;
  share?: number;
  retries?: number;
}

interface Bucket {
  at: string;
  hours: number;
  success: number;
  partial: number;
  failed: number;
  cancelled: number;
}

interface Stats {
  hours: number;
  as_of: string;
  tasks: { now: Record<string, number>; ended: Record<string, number>; success: number | null; buckets: Bucket[] };
  calls: { n: number; success: number | null; retries: number };
  plans: Row[];
  tools: Row[];
  steps: Row[];
  phases: { phase: string; n: number; total_s: number; p50: number | null; p90: number | null; share: number }[];
  approval_wait: { n: number; p50: number | null; p90: number | null; rejects: number | null };
  regressions: { plan: string; step: string; before_s?: number; after_s?: number; text?: string }[];
  calibration: { covered: number | null; n: number };
}

const RANGES = ["24h", "7d", "30d"] as const;
const seconds = (value: number | null | undefined): string => (value === null || value === undefined ? "—" : length(value * 1000));
const share = (value: number | null | undefined): string => (value === null || value === undefined ? "—" : `${(value * 100).toFixed(value > 0.995 || value === 0 ? 0 : 1)} %`);

export function StatsPage() {
  const { query, route } = useLocation();
  const range = RANGES.find((one) => one === query.range) ?? "24h";
  const plan = query.plan ?? "";
  const asked = new URLSearchParams({ range, ...(plan ? { plan } : {}) }).toString();
  const stats = useMemo(() => resource(() => get<Stats>(`/v1/stats?${asked}`), 4000), [asked]);
  useEffect(() => {
    void stats.refresh();
    const end = onEvent((event) => event.type.startsWith("task.") && stats.stale());
    return () => {
      end();
      stats.stop();
    };
  }, [stats]);
  const found = stats.value.value;
  const go = (change: Record<string, string>): void => route(at(`/stats?${new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(asked)), ...change })}`), true);
  const ended = found ? Object.values(found.tasks.ended).reduce((sum, n) => sum + n, 0) : 0;
  return (
    <div class="page">
      <div class="page-head">
        <h1>Stats</h1>
        <div class="chips" role="group" aria-label="Range">{RANGES.map((one) => <button type="button" key={one} class="chip" aria-pressed={one === range} onClick={() => go({ range: one })}>{one === "24h" ? "24 h" : one === "7d" ? "7 d" : "30 d"}</button>)}</div>
        <label class="inline">Plan <select value={plan} onChange={(event) => go({ plan: event.currentTarget.value })}><option value="">all</option>{[...new Set([plan, ...(found?.plans.map((one) => one.plan ?? "") ?? [])])].filter(Boolean).map((one) => <option key={one}>{one}</option>)}</select></label>
        <Download name="tasks.csv" label="CSV" make={async () => new Blob([await (await raw("GET", `/v1/export?what=tasks&format=csv&since=${range}${plan ? `&plan=${encodeURIComponent(plan)}` : ""}`, undefined, { accept: "*/*" })).text()], { type: "application/octet-stream" })} />
      </div>
      {stats.error.value && <ErrorCard error={stats.error.value} />}
      {found && ended === 0 && <div class="empty card"><p>Needs one finished task; estimates get a score from 20.</p></div>}
      {found && ended > 0 && (
        <>
          <dl class="figures card panel">
            <div><dt>ended</dt><dd>{ended}</dd></div><div><dt>success</dt><dd>{share(found.tasks.success)}</dd></div><div><dt>calls</dt><dd>{found.calls.n.toLocaleString("en")}</dd></div><div><dt>retries</dt><dd>{found.calls.retries}</dd></div>
            <div><dt>approval wait</dt><dd>{seconds(found.approval_wait.p50)}</dd></div><div><dt>rejected</dt><dd>{share(found.approval_wait.rejects)} <span class="small muted">of {found.approval_wait.n}</span></dd></div>
            <div><dt>estimates right</dt><dd>{found.calibration.n < 20 ? <span class="muted small">{found.calibration.n} of 20 needed</span> : <>{share(found.calibration.covered)} <span class="small muted">of {found.calibration.n}; 75–85 % is good</span></>}</dd></div>
          </dl>
          <Section name="Outcomes"><Panel name="Outcomes"><Outcomes buckets={found.tasks.buckets} hours={found.hours} asOf={found.as_of} /></Panel></Section>
          <div class="columns">
            <Section name="Plans"><Table rows={found.plans} name={(one) => one.plan ?? ""} head="Plan" /></Section>
            <Section name="Tools"><Table rows={found.tools} name={(one) => one.tool ?? ""} head="Tool" /></Section>
          </div>
          <div class="columns">
            <Section name="Slowest steps"><Table rows={[...found.steps].filter((one) => one.p50 !== null).sort((a, b) => (b.p50 ?? 0) - (a.p50 ?? 0)).slice(0, 8)} name={(one) => `${one.plan}: ${one.step}`} head="Step" /></Section>
            <Section name="Most retried"><Table rows={[...found.steps].filter((one) => (one.retries ?? 0) > 0).sort((a, b) => (b.retries ?? 0) - (a.retries ?? 0)).slice(0, 8)} name={(one) => `${one.plan}: ${one.step}`} head="Step" retries /></Section>
          </div>
          {found.regressions.length > 0 && <Section name="Slower than before"><ul class="list">{found.regressions.map((one, n) => <li key={n}>{visible(one.text ?? `${one.plan}: ${one.step}`)}</li>)}</ul></Section>}
        </>
      )}
    </div>
  );
}

const Section = ({ name, children }: { name: string; children: ComponentChildren }) => <section class="card panel" aria-label={name}><h2>{name}</h2>{children}</section>;

function Table({ rows, name, head, retries = false }: { rows: Row[]; name: (row: Row) => string; head: string; retries?: boolean }) {
  if (!rows.length) return <p class="muted">Nothing yet.</p>;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={head}><table>
      <thead><tr><th>{head}</th><th class="n">n</th>{retries ? <th class="n">retries</th> : <><th class="n">p50</th><th class="n">p90</th><th class="n">p99</th></>}<th class="n">success</th></tr></thead>
      <tbody>{rows.slice(0, 12).map((one) => <tr key={name(one)}><td class="mono wrap">{visible(name(one))}</td><td class="n">{one.n}</td>{retries ? <td class="n">{one.retries}</td> : <><td class="n">{seconds(one.p50)}</td><td class="n">{seconds(one.p90)}</td><td class="n">{seconds(one.p99)}</td></>}<td class="n">{share(one.success)}</td></tr>)}</tbody>
    </table></div>
  );
}

const SERIES = [["success", "completed"], ["partial", "running"], ["failed", "failed"], ["cancelled", "queued"]] as const;

/** A chart, and the same figures as a table. */
function Outcomes({ buckets, hours, asOf }: { buckets: Bucket[]; hours: number; asOf: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const to = Date.parse(asOf) / 1000;
    let chart: { destroy: () => void } | null = null;
    let here = true;
    void import("../ui/chart.ts").then(({ bars }) => {
      if (here && place.current) chart = bars(place.current, buckets.map((one) => Date.parse(one.at) / 1000 + one.hours * 1800), SERIES.map(([name, colour]) => ({ name, colour, values: buckets.map((one) => one[name]) })), to - hours * 3600, to);
    });
    return () => {
      here = false;
      chart?.destroy();
    };
  }, [buckets]);
  return (
    <>
      {buckets.length > 0 && <div class="chart" ref={place} role="img" aria-label="Outcomes over time; the same figures are in the table below" />}
      <details><summary class="small muted">As a table</summary><div class="scroll-x" tabIndex={0} role="region" aria-label="Outcomes as a table"><table>
        <thead><tr><th>From</th>{SERIES.map(([name]) => <th key={name} class="n">{name}</th>)}</tr></thead>
        <tbody>{buckets.map((one) => <tr key={one.at}><td>{new Date(one.at).toLocaleString("en-GB")}</td>{SERIES.map(([name]) => <td key={name} class="n">{one[name]}</td>)}</tr>)}</tbody>
      </table></div></details>
    </>
  );
}
