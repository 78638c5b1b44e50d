// What tools said while they ran: the last lines, then live. Every line has an address.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Json } from "../data/api.ts";
import { get } from "../data/session.ts";
import { logLine, visible } from "../logic/text.ts";
import { clock, instant } from "../logic/times.ts";
import { ErrorCard } from "./parts.tsx";
import { useVirtual } from "./virtual.ts";

interface Line {
  n: number;
  at: string | null;
  step: string | null;
  attempt: number | null;
  level: string | null;
  message: string | null;
  fields: { [name: string]: Json } | null;
}

interface Page {
  items: Line[];
  next_after: number;
}

const KEPT = 50_000;
const BACKLOG = 1000;
const BEFORE = 200; // lines before one that was linked to
const WAIT_S = 20;
const ROW_PX = 22;
const LEVELS = ["debug", "info", "warning", "error"] as const;

export interface LogsProps {
  task: string;
  step: string | null;
  /** The line the address names. */
  line: number | null;
  live: boolean;
  streamed: string | undefined;
  onLine: (line: number) => void;
}

export const Streamed = ({ text }: { text: string }) => <section class="streamed"><p class="small muted">As it comes; not recorded</p><pre>{logLine(text)}</pre></section>;

export function Logs({ task, step, line, live, streamed, onLine }: LogsProps) {
  const [level, setLevel] = useState("");
  const [attempt, setAttempt] = useState("");
  const [text, setText] = useState("");
  const [whole, setWhole] = useState(false);
  const { lines, error } = useLines(task, { ...(step === null ? {} : { step }), ...(level ? { level } : {}), ...(attempt ? { attempt } : {}) }, whole ? 0 : line, live);
  const wanted = text.toLowerCase();
  const shown = wanted ? lines.filter((one) => said(one).toLowerCase().includes(wanted)) : lines;
  const attempts = [...new Set(lines.map((one) => one.attempt).filter((one) => one !== null))];
  const first = lines[0]?.n ?? 1;
  return (
    <div class="logs">
      <div class="json-bar">
        <input type="search" aria-label="Filter the log" placeholder="Filter" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <select aria-label="Level" value={level} onChange={(event) => setLevel(event.currentTarget.value)}><option value="">all levels</option>{LEVELS.map((one) => <option key={one} value={one}>{one}</option>)}</select>
        {(attempts.length > 1 || attempt) && <select aria-label="Attempt" value={attempt} onChange={(event) => setAttempt(event.currentTarget.value)}><option value="">all tries</option>{attempts.map((one) => <option key={one} value={String(one)}>try {one}</option>)}</select>}
        {!whole && first > 1 && <button type="button" class="tiny" onClick={() => setWhole(true)}>From the first line</button>}
      </div>
      {streamed !== undefined && <Streamed text={streamed} />}
      {error && <ErrorCard error={error} />}
      {!shown.length && <p class="muted">{wanted ? "No line with this." : "Nothing was logged."}</p>}
      <Lines key={String(whole)} lines={shown} line={line} fromFirst={whole} named={step === null} onLine={onLine} />
    </div>
  );
}

const rest = (line: Line): string => (line.fields && Object.keys(line.fields).length ? ` ${JSON.stringify(line.fields)}` : "");
const said = (line: Line): string => (line.message ?? "") + rest(line);

/** From a line on (null: the last ones), and then whatever comes. */
function useLines(task: string, filter: Record<string, string>, from: number | null, live: boolean): { lines: Line[]; error: Error | null } {
  const [lines, setLines] = useState<Line[]>([]);
  const [error, setError] = useState<Error | null>(null);
  const begin = useRef(from);
  if (from === 0) begin.current = 0;
  useEffect(() => {
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      let all: Line[] = [];
      let after = Math.max(0, (begin.current ?? 0) - BEFORE);
      let tail = begin.current === null;
      while (!stop.signal.aborted) {
        const asked = new URLSearchParams({ ...filter, after: String(after), limit: String(BACKLOG), ...(tail ? { tail: String(BACKLOG) } : {}), ...(live && !tail ? { wait: String(WAIT_S) } : {}) });
        const page = await get<Page>(`/v1/tasks/${task}/logs?${asked}`, stop.signal);
        if (stop.signal.aborted) return;
        after = page.next_after;
        if (page.items.length || tail) setLines((all = [...all, ...page.items].slice(-KEPT)));
        if ((!live && page.items.length < BACKLOG) || (begin.current === 0 && all.length >= KEPT)) return;
        tail = false;
      }
    };
    setLines([]);
    setError(null);
    follow().catch((problem: Error) => stop.signal.aborted || setError(problem));
    return () => stop.abort();
  }, [task, JSON.stringify(filter), from === 0, live]);
  return { lines, error };
}

function Lines({ lines, line, fromFirst, named, onLine }: { lines: Line[]; line: number | null; fromFirst: boolean; named: boolean; onLine: (line: number) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(line === null && !fromFirst);
  const [seen, setSeen] = useState(0);
  const virtual = useVirtual(place, lines.length, ROW_PX);
  const last = lines.at(-1)?.n ?? 0;
  const at = line === null ? -1 : lines.findIndex((one) => one.n === line);
  useEffect(() => {
    if (follow && lines.length) virtual.show(lines.length - 1, "end");
    if (follow) setSeen(last);
  }, [last, follow]);
  useEffect(() => {
    if (at >= 0) virtual.show(at);
  }, [at >= 0]);
  const leave = (): void => {
    const here = place.current;
    setFollow(here !== null && here.scrollTop + here.clientHeight > here.scrollHeight - ROW_PX);
  };
  const more = lines.length - lines.findIndex((one) => one.n > seen);
  return (
    <div class="log-place">
      <div class="log-lines mono" ref={place} tabIndex={0} role="region" aria-label="Log lines" onScroll={leave}>
        <div style={{ height: `${virtual.height}px` }} class="grid">
          {virtual.items.map(({ index, start }) => {
            const one = lines[index];
            return one ? <OneLine key={one.n} line={one} top={start} named={named} here={one.n === line} onLine={onLine} /> : null;
          })}
        </div>
      </div>
      {!follow && last > seen && <button type="button" class="chip jump" onClick={() => setFollow(true)}>Jump to newest ({more})</button>}
    </div>
  );
}

const LOUD: Readonly<Record<string, string>> = { error: "s-failed", warning: "s-retrying" };

function OneLine({ line, top, named, here, onLine }: { line: Line; top: number; named: boolean; here: boolean; onLine: (line: number) => void }) {
  const link = new URLSearchParams(location.search);
  link.set("tab", "logs");
  link.set("line", String(line.n));
  const go = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    onLine(line.n);
  };
  return (
    <p class={`log-line ${LOUD[line.level ?? ""] ?? ""}${here ? " here" : ""}`} data-line={line.n} style={{ transform: `translateY(${top}px)` }} title={logLine(said(line))}>
      <a class="muted" href={`?${link}`} aria-label={`Link to line ${line.n}`} onClick={go}>{line.at ? clock(instant(line.at) ?? 0) : line.n}</a>{" "}
      {named && line.step && <span class="muted">{visible(line.step)} </span>}{logLine(line.message ?? "")}<span class="muted">{logLine(rest(line))}</span>
    </p>
  );
}
