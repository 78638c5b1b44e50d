// Marks and icons: shapes that can be told apart without their colour.

import type { ComponentChildren } from "preact";
import type { Mark, Shown } from "../logic/status.ts";

const line = { fill: "none", stroke: "currentColor", "stroke-width": "1.8", "stroke-linecap": "round", "stroke-linejoin": "round" } as const;

const MARKS: Readonly<Record<Mark, () => ComponentChildren>> = {
  running: () => (<><circle cx="8" cy="8" r="6" {...line} /><path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" /></>),
  retrying: () => <path d="M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3" {...line} />,
  stalled: () => <path d="M8 2 14.5 13.5h-13zM8 6.5v3M8 11.6v.1" {...line} />,
  paused: () => <path d="M5.5 3v10M10.5 3v10" {...line} stroke-width="2.6" />,
  completed: () => <path d="m3 8.5 3.4 3.5L13 4.5" {...line} stroke-width="2.2" />,
  issues: () => <path d="m1.5 8.5 3.2 3.5 6-7.5M14 4v5M14 12v.1" {...line} stroke-width="2.1" />,
  failed: () => <path d="m4 4 8 8M12 4l-8 8" {...line} stroke-width="2.2" />,
  queued: () => <circle cx="8" cy="8" r="5.4" {...line} />,
  waiting: () => <path d="M4 2.5h8M4 13.5h8M5 2.5c0 3.5 6 4 6 11M11 2.5c0 3.5-6 4-6 11" {...line} stroke-width="1.5" />,
  skipped: () => <path d="M2.5 10.5c1-5 8-6 10.5-1M13 5v4.5H8.5" {...line} />,
  cancelled: () => <path d="M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM4.2 4.2l7.6 7.6" {...line} />,
};

export const Glyph = ({ mark, live = false }: { mark: Mark; live?: boolean }) => (
  <svg class={`glyph s-${mark}${live ? " live-mark" : ""}`} viewBox="0 0 16 16" aria-hidden="true">{MARKS[mark]()}</svg>
);

/** A mark with its word. */
export const StatusMark = ({ shown }: { shown: Shown }) => (
  <span class={`status s-${shown.mark}`}><Glyph mark={shown.mark} />{shown.word}</span>
);

const ICONS = {
  tasks: "M3 5h2M3 10h2M3 15h2M8 5h9M8 10h9M8 15h9",
  inbox: "M3 11h4l1.5 2.5h3L13 11h4M3 11l2.5-7h9l2.5 7v5H3z",
  plans: "M5 3h7l3 3v11H5zM12 3v3h3M7.5 10h5M7.5 13h5",
  health: "M2.5 10.5h3.5l2-5 4 9 2-4h3.5",
  stats: "M4 16V9M8.5 16V4M13 16v-5M17 16H2.5",
  settings: "M4 6h7M15 6h1M4 14h1M9 14h7M13 4v4M7 12v4",
  search: "M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM13 13l3.5 3.5",
  back: "M11.5 5 6.5 10l5 5",
  right: "M8 5l5 5-5 5",
  down: "M5 8l5 5 5-5",
  close: "M5 5l10 10M15 5 5 15",
  more: "M5 10h.1M10 10h.1M15 10h.1",
  copy: "M7 7h9v9H7zM4 13V4h9",
  download: "M10 3v9M6 8.5l4 4 4-4M4 16.5h12",
} as const;

export const Icon = ({ name }: { name: keyof typeof ICONS }) => (
  <svg class="glyph" viewBox="0 0 20 20" aria-hidden="true"><path d={ICONS[name]} {...line} stroke-width={name === "more" ? "2.6" : "1.6"} /></svg>
);

export const Logo = () => (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <rect width="24" height="24" rx="6" fill="var(--accent)" />
    <path d="M5 17h4v-4h4V9h6" fill="none" stroke="var(--on-accent)" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round" />
  </svg>
);
