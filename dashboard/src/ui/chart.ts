// Charts, loaded only where there is one.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock } from "../logic/times.ts";

export interface Series {
  name: string;
  /** A status whose colour it has. */
  colour: string;
  values: number[];
}

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const DAY_S = 86_400;

/** The hour, or the day where hours do not matter; at midnight the day too. */
function said(seconds: number, span: number): string {
  const at = new Date(seconds * 1000);
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return span > 2 * DAY_S || (at.getHours() === 0 && at.getMinutes() === 0) ? day : clock(seconds * 1000, false);
}

/** Stacked bars over time. */
export function bars(place: HTMLElement, times: number[], series: readonly Series[], from: number, to: number): { destroy: () => void } {
  const stacked: number[][] = [];
  for (const one of series) stacked.push(one.values.map((value, n) => value + (stacked.at(-1)?.[n] ?? 0)));
  const drawn = series.map((one, n) => ({ ...one, values: stacked[n] ?? [] })).reverse();
  const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "12px system-ui" };
  const chart = new uPlot(
    {
      width: place.clientWidth, height: 180, legend: { show: true, live: false }, cursor: { show: false },
      scales: { x: { range: [from, to] }, y: { range: (_chart, _low, high) => [0, Math.max(1, Math.ceil(high))] } },
      axes: [{ ...axis, values: (_chart, at) => at.map((seconds) => said(seconds, to - from)) }, { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 100_000] }],
      series: [{}, ...drawn.map((one) => ({ label: one.name, stroke: colour(one.colour), fill: colour(one.colour), points: { show: false }, ...(uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.7, 40] }) } : {}) }))],
    },
    [times, ...drawn.map((one) => one.values)],
    place,
  );
  const watch = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: 180 }));
  watch.observe(place);
  return {
    destroy: () => {
      watch.disconnect();
      chart.destroy();
    },
  };
}
