// Plans that can be started by name: how they fared, what they ask for, and what starting one would mean.

import { useEffect, useMemo, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import type { Json, JsonObject, Page, PlanRow, Schema, Task } from "../data/api.ts";
import { at } from "../data/base.ts";
import { onEvent } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import { get, may, post } from "../data/session.ts";
import type { Estimate } from "../logic/estimate.ts";
import { range, rough } from "../logic/estimate.ts";
import type { Mark } from "../logic/status.ts";
import { visible } from "../logic/text.ts";
import { length } from "../logic/times.ts";
import { Download } from "../ui/json.tsx";
import { Glyph } from "../ui/marks.tsx";
import { Copy, ErrorCard, Panel, Said, To } from "../ui/parts.tsx";
import { Fields } from "../ui/schemaform.tsx";

const MARKS: Readonly<Record<string, Mark>> = { completed: "completed", failed: "failed", cancelled: "cancelled" };

const seconds = (value: number | null): string => (value === null ? "—" : length(value * 1000));
const share = (value: number | null): string => (value === null ? "—" : `${Math.round(value * 100)} %`);

export function PlansPage() {
  const { params } = useRoute();
  return params.name ? <OnePlan key={params.name} name={decodeURIComponent(params.name)} /> : <AllPlans />;
}

function AllPlans() {
  const plans = useMemo(() => resource(() => get<Page<PlanRow>>("/v1/plans"), 3000), []);
  useEffect(() => {
    void plans.refresh();
    const end = onEvent((event) => /^task\.(completed|failed|cancelled)$/.test(event.type) && plans.stale());
    return () => {
      end();
      plans.stop();
    };
  }, []);
  const found = plans.value.value?.items ?? null;
  return (
    <div class="page">
      <div class="page-head"><h1>Plans</h1></div>
      {plans.error.value && <ErrorCard error={plans.error.value} />}
      {found && !found.length && <div class="empty card"><p>No plans yet.</p><p><code>everstep init</code> <Copy text="everstep init" /></p></div>}
      <ul class="plan-cards">
        {found?.map((plan) => (
          <li key={plan.name} class="card plan-card">
            <To path={`/plans/${encodeURIComponent(plan.name)}`} class="title"><Said text={plan.name} /></To>
            <p class="muted"><Said text={plan.description ?? plan.title ?? ""} /></p>
            <Marks plan={plan} />
            <dl class="figures"><div><dt>median</dt><dd>{seconds(plan.p50)}</dd></div><div><dt>p90</dt><dd>{seconds(plan.p90)}</dd></div><div><dt>success</dt><dd>{share(plan.success)}</dd></div></dl>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The last outcomes, the newest at the right: shape and colour. */
const Marks = ({ plan }: { plan: PlanRow }) => (
  <p class="marks" role="img" aria-label={plan.last.length ? `last outcomes: ${plan.last.map((one) => one.status).join(", ")}` : "never run"}>
    {plan.last.length ? [...plan.last].reverse().map((one) => <Glyph key={one.task} mark={MARKS[one.status] ?? "queued"} />) : <span class="small muted">never run</span>}
  </p>
);

interface Checked {
  valid: boolean;
  problems: { message: string; where?: string }[];
  summary: { steps: number; approvals: string[]; effects: Record<string, number>; asks: string[]; estimate: Estimate | null } | null;
}

interface Expected {
  task: Estimate;
  steps: Record<string, Estimate>;
}

function OnePlan({ name }: { name: string }) {
  const plan = useMemo(() => resource(() => get<PlanRow>(`/v1/plans/${encodeURIComponent(name)}`)), [name]);
  const [inputs, setInputs] = useState<JsonObject | null>({});
  const [checked, setChecked] = useState<Checked | null>(null);
  const [expected, setExpected] = useState<Expected | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const { route } = useLocation();
  useEffect(() => {
    void plan.refresh();
    post<Expected>("/v1/estimates", { plan_name: name, inputs: {} }).then(setExpected, () => undefined);
    return () => plan.stop();
  }, []);
  const found = plan.value.value;
  if (!found) return <div class="page">{plan.error.value ? <ErrorCard error={plan.error.value} /> : <p class="muted" role="status">Reading…</p>}</div>;
  if (!found.valid) return <div class="page"><h1><Said text={name} /></h1><p class="note bad">This plan cannot be read: <code>everstep plan check</code> says why.</p></div>;
  const schema: Schema = { properties: Object.fromEntries(found.inputs.map((one) => [one.name, one.schema])), required: found.inputs.filter((one) => one.required).map((one) => one.name) };
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setBusy(false);
    }
  };
  const check = (): Promise<void> => attempt(async () => {
    setChecked(await post<Checked>("/v1/plans/check", { plan_name: name, inputs: inputs ?? {} }));
    setExpected(await post<Expected>("/v1/estimates", { plan_name: name, inputs: inputs ?? {} }).catch(() => null));
  });
  const start = (): Promise<void> => attempt(async () => route(at(`/tasks/${(await post<Task>("/v1/tasks", { plan_name: name, inputs: inputs ?? {} })).id}`)));
  const steps = ((found.plan?.steps as Json[] | undefined) ?? []) as unknown as { id: string; title?: string; tool?: string; approve?: Json }[];
  return (
    <div class="page">
      <div class="page-head"><To path="/plans" class="button plain">‹ Plans</To><h1><Said text={found.name} /></h1><Marks plan={found} /></div>
      {found.description && <p class="muted"><Said text={found.description} /></p>}
      <div class="columns">
        <section class="card panel" aria-label="Start">
          <h2>Start</h2>
          {found.inputs.length ? <Fields schema={schema} initial={{}} onChange={setInputs} /> : <p class="muted">It needs no inputs.</p>}
          {checked && (checked.valid ? <p class="note">Fine: {checked.summary?.steps} steps{checked.summary?.approvals.length ? `, stops for approval at ${checked.summary.approvals.join(", ")}` : ""}{checked.summary?.asks.length ? `; a crash would ask about ${checked.summary.asks.join(", ")}` : ""}.</p>
            : <div class="note bad"><ul>{checked.problems.map((one, n) => <li key={n}><Said text={one.message} /></li>)}</ul></div>)}
          {error && <ErrorCard error={error} />}
          <div class="actions"><button type="button" disabled={busy} onClick={() => void check()}>Check</button><button type="button" class="primary" disabled={busy || inputs === null || !may("write")} title={may("write") ? "" : "this token may not start tasks (scope write)"} onClick={() => void start()}>{busy ? "Starting…" : "Start"}</button></div>
        </section>
        <section class="card panel" aria-label="Preview">
          <h2>What it does</h2>
          <p class="muted small">{expected?.task.p50 === null || expected?.task.p50 === undefined ? (found.p50 === null ? "no estimate yet" : `the last ones took ${seconds(found.p50)} in the middle, 9 of 10 at most ${seconds(found.p90)}`) : `usually ${rough(expected.task.p50)}, likely ${range(expected.task.p10 ?? 0, expected.task.p90 ?? 0)}`}</p>
          <ol class="preview">
            {steps.map((one) => {
              const p50 = expected?.steps[one.id]?.p50 ?? null;
              return <li key={one.id}><Glyph mark={one.approve !== undefined || one.tool === "ask" ? "paused" : "queued"} /><span class="grow"><Said text={one.title ?? one.id} /> <span class="mono small muted">{visible(one.tool ?? "")}</span>{one.approve !== undefined && <span class="tag">stops for approval</span>}{one.tool === "ask" && <span class="tag">asks</span>}</span><span class="small muted">{p50 === null ? "" : `usually ${length(p50 * 1000)}`}</span></li>;
            })}
          </ol>
        </section>
      </div>
      <Panel name="Plan"><details class="card panel"><summary>The plan itself <span class="mono small muted">{found.digest.slice(0, 19)}</span></summary>{found.plan_text !== undefined && <div class="json"><div class="json-bar"><span class="grow" /><Copy text={found.plan_text} /><Download name={`${found.name}.plan.yaml`} make={() => Promise.resolve(new Blob([found.plan_text ?? ""], { type: "application/octet-stream" }))} /></div><pre aria-label="The plan as YAML">{visible(found.plan_text)}</pre></div>}</details></Panel>
    </div>
  );
}
