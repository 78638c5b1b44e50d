// One row per step is its name and its bar. Attempts, waits and pauses are told apart by pattern, not by colour alone.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Step } from "../data/api.ts";
import { now, serverNow } from "../data/clock.ts";
import { prefs } from "../data/prefs.ts";
import type { TaskData } from "../data/task.ts";
import type { Segment, StepView, View } from "../logic/fold.ts";
import { place, scale, ticks as axisTicks } from "../logic/scale.ts";
import type { Scale } from "../logic/scale.ts";
import { TERMINAL, ofStep } from "../logic/status.ts";
import { clock, length } from "../logic/times.ts";
import { onKey as onKeys } from "./keys.ts";
import { Glyph, Icon } from "./marks.tsx";
import { Said } from "./parts.tsx";
import { useVirtual } from "./virtual.ts";

interface Row {
  step: StepView;
  level: number;
  position: number;
  siblings: number;
}

export interface TimelineProps {
  data: TaskData;
  selected: string | null;
  generation: number | null;
  onSelect: (step: string) => void;
}

function rowsOf(view: View, open: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  view.order.forEach((id, index) => {
    const step = view.steps.get(id);
    if (!step) return;
    rows.push({ step, level: 1, position: index + 1, siblings: view.order.length });
    if (!open.has(id)) return;
    step.items.forEach((item, number) => {
      const child = view.steps.get(item);
      if (child) rows.push({ step: child, level: 2, position: number + 1, siblings: step.items.length });
    });
  });
  return rows;
}

/** When something was being done, by the segments of all steps; large tasks by their steps alone. */
function spansOf(view: View, upTo: number): [number, number][] {
  const spans: [number, number][] = [];
  for (const step of view.steps.values()) {
    if (step.parent !== null && view.steps.size > 2000) continue;
    for (const segment of step.segments) if (segment.kind === "executing") spans.push([segment.from, segment.to ?? upTo]);
    if (step.segments.length === 0 && step.startedAt !== null) spans.push([step.startedAt, step.endedAt ?? upTo]);
    if (step.items.length && view.steps.size > 2000 && step.startedAt !== null) spans.push([step.startedAt, step.endedAt ?? upTo]);
  }
  return spans;
}

interface Ghost {
  from: number;
  p50: number;
  p90: number;
}

/** Steps to come, where they would be if everything went as usual. */
function ghostsOf(steps: readonly Step[], from: number, begin: number): { ghosts: Map<string, Ghost>; until: number } {
  const ghosts = new Map<string, Ghost>();
  let at = from;
  for (const step of steps) {
    const { p50, p90 } = step.estimate ?? {};
    if (step.status !== "pending" || p50 === null || p50 === undefined || p90 === null || p90 === undefined) continue;
    ghosts.set(step.id, { from: at, p50: at + p50 * 1000, p90: at + p90 * 1000 });
    at += p50 * 1000;
  }
  if (ghosts.size) at = Math.max(at, from + 0.06 * (from - begin)); // room to be seen
  const most = Math.max(1.5 * (from - begin), 3000);
  if (at - from > most) {
    const shrink = most / (at - from);
    for (const ghost of ghosts.values()) {
      ghost.p50 = from + (ghost.p50 - from) * shrink;
      ghost.p90 = from + (ghost.p90 - from) * shrink;
      ghost.from = from + (ghost.from - from) * shrink;
    }
  }
  return { ghosts, until: Math.min(at, from + most) };
}

export function Timeline({ data, selected, generation, onSelect }: TimelineProps) {
  void data.version.value;
  const view = data.view;
  const task = data.task.value.value;
  const opened = useSignal<ReadonlySet<string>>(new Set());
  const unfolded = useSignal<ReadonlySet<number>>(new Set());
  const follow = useSignal(true);
  const leftAt = useSignal(0);
  const focused = useSignal(0);
  const hovered = useSignal<number | null>(null);
  const within = useSignal(false);
  const scroller = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLDivElement>(null);

  const rows = useMemo(() => rowsOf(view, opened.value), [view, data.version.value, opened.value]);
  const height = prefs.value.density === "roomy" ? 36 : 28;
  const virtual = useVirtual(scroller, rows.length, height, { keep: focused.value });
  const ended = TERMINAL.has(view.status);
  const upTo = ended && view.endedAt !== null ? view.endedAt : now.value;
  const begin = view.startedAt ?? view.steps.get(view.order[0] ?? "")?.startedAt ?? upTo;
  const { ghosts, until } = ended ? { ghosts: new Map<string, Ghost>(), until: upTo } : ghostsOf(task?.steps ?? [], upTo, begin);
  const axis = useMemo(() => scale(spansOf(view, upTo), begin, Math.max(upTo, until), unfolded.value), [view, view.seq, upTo, until, unfolded.value]);

  const active = useMemo(() => rows.findIndex(({ step }) => step.status === "running" || step.status === "paused"), [rows]);
  useEffect(() => {
    if (follow.value && !ended && active >= 0 && rows.length > 12) virtual.show(active);
  }, [active]);
  useEffect(() => {
    const index = rows.findIndex(({ step }) => step.id === selected);
    if (index >= 0) focused.value = index;
  }, [selected]);

  const leave = (): void => {
    if (follow.value) leftAt.value = serverNow();
    follow.value = false;
  };
  const newer = follow.value ? 0 : rows.filter(({ step }) => (step.startedAt ?? 0) > leftAt.value).length;
  const toggle = (id: string, open?: boolean): void => {
    const next = new Set(opened.value);
    if (open ?? !next.has(id)) next.add(id);
    else next.delete(id);
    opened.value = next;
  };
  const focus = (index: number): void => {
    const to = Math.max(0, Math.min(rows.length - 1, index));
    focused.value = to;
    virtual.show(to);
    requestAnimationFrame(() => grid.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus());
  };
  const begun = (by: number): void => focus(within.value ? focused.value + by : focused.value); // the first key finds the row, the next one leaves it
  const anywhere: Record<string, () => void> = {
    j: () => begun(1),
    k: () => begun(-1),
    f: () => (unfolded.value = new Set()),
    l: () => (follow.value ? leave() : (follow.value = true)),
    ".": () => {
      const next = [...rows.keys()].map((n) => (n + focused.value + 1) % rows.length).find((n) => ["failed", "paused"].includes(rows[n]?.step.status ?? ""));
      if (next !== undefined) focus(next);
    },
  };
  useLayoutEffect(() => onKeys(anywhere));
  const onKey = (event: KeyboardEvent): void => {
    const row = rows[focused.value];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const many = row.step.items.length > 0;
    const keys: Record<string, () => void> = {
      ...anywhere,
      ArrowDown: () => begun(1),
      ArrowUp: () => begun(-1),
      Home: () => focus(0),
      End: () => focus(rows.length - 1),
      PageDown: () => focus(focused.value + 12),
      PageUp: () => focus(focused.value - 12),
      ArrowRight: () => (many && !opened.value.has(row.step.id) ? toggle(row.step.id, true) : many && focus(focused.value + 1)),
      ArrowLeft: () => (many && opened.value.has(row.step.id) ? toggle(row.step.id, false) : row.level > 1 && focus(rows.findIndex(({ step }) => step.id === row.step.parent))),
      Enter: () => onSelect(row.step.id),
      " ": () => onSelect(row.step.id),
    };
    const act = keys[event.key];
    if (act && (event.key.length > 1 || prefs.value.keys || event.key === " ")) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  };
  const marked = rows[hovered.value ?? (within.value || selected !== null ? focused.value : -1)]?.step;
  const takes = new Set(marked?.takes ?? []);
  const gives = useMemo(() => new Set(marked ? view.order.filter((id) => view.steps.get(id)?.takes.includes(marked.parent ?? marked.id)) : []), [marked, rows]);
  return (
    <div class="timeline">
      <Axis axis={axis} begin={begin} onUnfold={(from) => (unfolded.value = new Set([...unfolded.value, from]))} view={view} />
      <div class="rows-scroll" ref={scroller} onWheel={leave} onTouchMove={leave}>
        <div ref={grid} role="treegrid" aria-label="Steps" aria-busy={!data.caughtUp.value} aria-rowcount={rows.length} aria-colcount={3} class="grid" style={{ height: `${virtual.height}px` }} onKeyDown={onKey} onPointerLeave={() => (hovered.value = null)}
          onFocusIn={() => (within.value = true)} onFocusOut={() => (within.value = false)}>
          {virtual.items.map(({ index, start }) => {
            const row = rows[index];
            if (!row) return null;
            const tag = takes.has(row.step.id) ? "takes" : gives.has(row.step.id) ? "gives" : "";
            return (
              <StepRow key={row.step.id} row={row} index={index} top={start} height={height} axis={axis} upTo={upTo} generation={generation} ghost={ghosts.get(row.step.id)}
                server={data.step(row.step.id)} final={view.finals.has(row.step.id)} tag={tag} open={opened.value.has(row.step.id)} selected={selected === row.step.id}
                tabbable={index === Math.min(focused.value, rows.length - 1)} onFocus={() => (focused.value = index)} onHover={() => (hovered.value = index)} onSelect={() => onSelect(row.step.id)} onToggle={() => toggle(row.step.id)} />
            );
          })}
        </div>
      </div>
      {!follow.value && !ended && active >= 0 && (
        <button type="button" class="chip jump" onClick={() => { follow.value = true; virtual.show(active); }}>Jump to newest{newer > 0 && ` (${newer.toLocaleString("en")})`}</button>
      )}
    </div>
  );
}

function Axis({ axis, begin, view, onUnfold }: { axis: Scale; begin: number; view: View; onUnfold: (from: number) => void }) {
  const folded = axis.pieces.filter((piece) => piece.folded);
  const marks = axisTicks(axis, 5).filter((at) => !folded.some((piece) => covers(piece, place(axis, at))));
  const byClock = prefs.value.times === "clock";
  return (
    <div class="axis" aria-hidden={folded.length ? undefined : "true"}>
      <span class="axis-name">Step</span>
      <div class="axis-track">
        {marks.map((at) => <span key={at} class="axis-tick" style={{ left: `${place(axis, at) * 100}%` }}>{byClock ? clock(at) : at === begin ? "0" : length(at - begin)}</span>)}
        {folded.map((piece) => (
          <button type="button" key={piece.from} class={`break cut${piece.x1 > 0.8 ? " at-end" : piece.x0 < 0.2 ? " at-begin" : ""}`} style={{ left: `${((piece.x0 + piece.x1) / 2) * 100}%` }}
            title={`${length(piece.to - piece.from)} ${why(view, piece.from, piece.to)}: unfold`} onClick={() => onUnfold(piece.from)}>
            {length(piece.to - piece.from)} {why(view, piece.from, piece.to)}
          </button>
        ))}
      </div>
    </div>
  );
}

const LABEL = 0.22; // half of the axis that the words of a break may take, at either side of its middle

/** Whether the words of a break stand where something else would be written; at the ends they reach inwards. */
function covers(piece: { x0: number; x1: number }, x: number): boolean {
  if (piece.x1 > 0.8) return x > piece.x1 - 2 * LABEL;
  if (piece.x0 < 0.2) return x < piece.x0 + 2 * LABEL;
  return Math.abs(x - (piece.x0 + piece.x1) / 2) < LABEL;
}

const FILLED = { paused: "waiting for somebody", retry: "waiting to retry", waiting: "waiting for its turn" } as const;

/** What filled most of a long gap. */
function why(view: View, from: number, to: number): string {
  let [most, words] = [0, "in which nothing happened"];
  for (const step of view.steps.values()) {
    for (const one of step.segments) {
      const filled = Math.min(one.to ?? to, to) - Math.max(one.from, from);
      if (one.kind === "executing" || filled <= most) continue;
      [most, words] = [filled, FILLED[one.kind]];
    }
  }
  return words;
}

interface StepRowProps {
  row: Row;
  index: number;
  top: number;
  height: number;
  axis: Scale;
  upTo: number;
  generation: number | null;
  ghost: Ghost | undefined;
  server: Step | undefined;
  final: boolean;
  tag: string;
  open: boolean;
  selected: boolean;
  tabbable: boolean;
  onFocus: () => void;
  onHover: () => void;
  onSelect: () => void;
  onToggle: () => void;
}

function StepRow(props: StepRowProps) {
  const { row, server, upTo } = props;
  const { step, level } = row;
  const shown = ofStep(step);
  const items = server?.counts ?? (step.items.length ? { total: step.itemsTotal, ...step.counts } : null);
  const counts = items && { ...items, total: items.total ?? Math.max(step.items.length, items.completed + items.failed + items.skipped) };
  const took = step.startedAt === null || step.status === "skipped" ? null : (step.endedAt ?? upTo) - step.startedAt;
  const title = level === 1 ? (server?.title ?? step.title ?? step.id) : step.id;
  const retrying = step.phase === "retry_wait" && step.status === "running";
  const tries = retrying ? `try ${step.attempts + 1}${step.retriesMax ? ` of ${step.retriesMax + 1}` : ""}` : step.attempts > 1 ? `${step.attempts} tries` : "";
  const words = [
    step.id, shown.word, counts ? `${counts.completed} of ${counts.total} items${counts.failed ? `, ${counts.failed} failed` : ""}` : "", tries, took === null ? "" : length(took), step.error ?? "",
  ].filter(Boolean).join(", ");
  return (
    <div role="row" class={`step-row level-${level} ${props.tag}${props.selected ? " selected" : ""}`} data-index={props.index} data-step={step.id} tabIndex={props.tabbable ? 0 : -1}
      aria-level={level} aria-posinset={row.position} aria-setsize={row.siblings} aria-rowindex={props.index + 1} aria-selected={props.selected}
      aria-expanded={step.items.length ? props.open : undefined} aria-label={words} style={{ transform: `translateY(${props.top}px)`, height: `${props.height}px` }}
      onFocus={props.onFocus} onPointerEnter={props.onHover} onClick={props.onSelect}>
      <span role="gridcell" class="step-name">
        {step.items.length > 0 ? (
          <span class="twist" onClick={(event) => { event.stopPropagation(); props.onToggle(); }}><Icon name={props.open ? "down" : "right"} /></span>
        ) : <span class="twist" />}
        <Glyph mark={shown.mark} live />
        <span class="cut"><Said text={title} /></span>
        <Tags step={step} counts={counts} tries={tries} final={props.final} />
      </span>
      <span role="gridcell" class="step-time muted">{took === null ? (step.status === "skipped" ? "skipped" : "") : length(took)}</span>
      <span role="gridcell" class="track" aria-hidden="true">
        {counts && counts.total > 0 && step.items.length > 0 && !props.open
          ? <Counts step={step} axis={props.axis} upTo={upTo} counts={counts} />
          : step.segments.filter((one) => props.generation === null || one.generation === props.generation).slice(-24).map((one, n) => <Seg key={n} segment={one} axis={props.axis} upTo={upTo} step={step} />)}
        {step.segments.length === 0 && step.startedAt !== null && step.status !== "pending" && <Plain step={step} axis={props.axis} upTo={upTo} />}
        {props.ghost && <GhostBar ghost={props.ghost} axis={props.axis} />}
      </span>
    </div>
  );
}

function Tags({ step, counts, tries, final }: { step: StepView; counts: { total: number; completed: number; failed: number; skipped: number } | null; tries: string; final: boolean }) {
  const said: string[] = [];
  if (counts) said.push(`${counts.completed + counts.failed + counts.skipped}/${counts.total}`);
  if (tries) said.push(tries);
  if (step.fallback) said.push(`via ${step.fallback}`);
  if (step.via !== null && !["tool", "fallback"].includes(step.via)) said.push({ probe: "probed", supplied: step.by === null ? "supplied" : `supplied by ${step.by}`, copied: "copied", signal: "by signal", literal: "fixed value" }[step.via] ?? step.via);
  if (step.degraded) said.push("degraded");
  if (final) said.push("finally");
  return <>{said.map((one) => <span key={one} class="tag"><Said text={one} /></span>)}{counts && counts.failed > 0 && <span class="tag s-failed">{counts.failed} failed</span>}</>;
}

const span = (axis: Scale, from: number, to: number): { left: string; width: string } => {
  const [a, b] = [place(axis, from), place(axis, to)];
  return { left: `${a * 100}%`, width: `${Math.max(0, b - a) * 100}%` };
};

function Seg({ segment, axis, upTo, step }: { segment: Segment; axis: Scale; upTo: number; step: StepView }) {
  const state = segment.kind === "executing" ? (segment.end === null ? "running" : segment.end === "succeeded" ? "completed" : segment.end === "abandoned" ? "stalled" : "failed")
    : segment.kind === "retry" ? "retrying" : segment.kind === "paused" ? "paused" : "queued";
  const open = segment.to === null && step.endedAt === null;
  return <i class={`seg ${segment.kind} s-${state}${segment.end === "abandoned" ? " abandoned" : ""}${open ? " open" : ""}`} style={span(axis, segment.from, segment.to ?? upTo)} />;
}

const Plain = ({ step, axis, upTo }: { step: StepView; axis: Scale; upTo: number }) => (
  <i class={`seg executing s-${ofStep(step).mark}`} style={span(axis, step.startedAt ?? upTo, step.endedAt ?? upTo)} />
);

/** A list of items as one bar: how many of each. */
function Counts({ step, axis, upTo, counts }: { step: StepView; axis: Scale; upTo: number; counts: { total: number; completed: number; failed: number; skipped: number } }) {
  const share = (n: number): string => `${(n / counts.total) * 100}%`;
  return (
    <i class="seg counts" style={span(axis, step.startedAt ?? upTo, step.endedAt ?? upTo)}>
      <b class="s-completed" style={{ width: share(counts.completed) }} /><b class="s-failed" style={{ width: share(counts.failed) }} /><b class="s-skipped" style={{ width: share(counts.skipped) }} />
    </i>
  );
}

/** Never so small that it cannot be seen, never over the edge. */
const ghostly = (axis: Scale, ghost: Ghost): { left: string; width: string } => {
  const { left, width } = span(axis, ghost.from, ghost.p90);
  return { left: `min(${left}, 100% - 16px)`, width };
};

const GhostBar = ({ ghost, axis }: { ghost: Ghost; axis: Scale }) => (
  <i class="seg ghost" style={ghostly(axis, ghost)}><b style={{ width: `${(100 * (ghost.p50 - ghost.from)) / Math.max(1, ghost.p90 - ghost.from)}%` }} /></i>
);
