// The journal as it is: every event by its number, and what it holds on demand.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Json } from "../data/api.ts";
import { get } from "../data/session.ts";
import type { Entry, TaskData } from "../data/task.ts";
import { visible } from "../logic/text.ts";
import { clock, instant } from "../logic/times.ts";
import { Download, JsonTree } from "./json.tsx";
import { useVirtual } from "./virtual.ts";

const ROW_PX = 26;
const PAGE = 500;

interface Events {
  events: (Json & { seq: number })[];
}

/** Every event of a task, one per line. */
async function everything(task: string): Promise<Blob> {
  const lines: string[] = [];
  let after = 0;
  while (true) {
    const { events } = await get<Events>(`/v1/tasks/${task}/events?after=${after}&limit=${PAGE}`);
    for (const event of events) lines.push(`${JSON.stringify(event)}\n`);
    if (events.length < PAGE) return new Blob(lines, { type: "application/octet-stream" });
    after = events.at(-1)?.seq ?? after;
  }
}

export function Journal({ data, step }: { data: TaskData; step: string | null }) {
  void data.version.value;
  const [text, setText] = useState("");
  const [open, setOpen] = useState<number | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const entries = useMemo(() => data.journal.filter((one) => isOf(one, step) && holds(one, text.toLowerCase())), [data.version.value, step, text, data.journal.length]);
  const virtual = useVirtual(place, entries.length, ROW_PX);
  return (
    <div class="logs">
      <div class="json-bar"><input type="search" aria-label="Filter the journal" placeholder="Filter: pause, failed, a name" value={text} onInput={(event) => setText(event.currentTarget.value)} /><Download name={`${data.id}.jsonl`} make={() => everything(data.id)} label="Export" /></div>
      <p class="small muted">{entries.length.toLocaleString("en")} events</p>
      {open !== null && <EventView task={data.id} seq={open} onClose={() => setOpen(null)} />}
      <div class="log-lines" ref={place} tabIndex={0} role="region" aria-label="Events">
        <div class="grid" style={{ height: `${virtual.height}px` }}>
          {virtual.items.map(({ index, start }) => {
            const one = entries[index];
            return one ? <JournalLine key={one.seq} entry={one} top={start} onOpen={() => setOpen(one.seq)} /> : null;
          })}
        </div>
      </div>
    </div>
  );
}

const isOf = (entry: Entry, step: string | null): boolean => step === null || entry.step === step || (entry.step?.startsWith(`${step}[`) ?? false);
const holds = (entry: Entry, wanted: string): boolean => !wanted || [entry.type, entry.actor, entry.step ?? ""].some((one) => one.toLowerCase().includes(wanted));

const JournalLine = ({ entry, top, onOpen }: { entry: Entry; top: number; onOpen: () => void }) => (
  <button type="button" class="journal-line" data-seq={entry.seq} style={{ transform: `translateY(${top}px)` }} onClick={onOpen}>
    <span class="muted mono">{entry.seq}</span><span class="muted">{clock(instant(entry.at) ?? 0)}</span><span>{entry.type}</span><span class="mono cut">{visible(entry.step ?? "")}</span><span class="muted cut">{visible(entry.actor)}</span>
  </button>
);

function EventView({ task, seq, onClose }: { task: string; seq: number; onClose: () => void }) {
  const [event, setEvent] = useState<Json | null>(null);
  useEffect(() => {
    setEvent(null);
    void get<{ events: Json[] }>(`/v1/tasks/${task}/events?after=${seq - 1}&limit=1`).then((page) => setEvent(page.events[0] ?? null), () => setEvent("it cannot be read now"));
  }, [task, seq]);
  return <div class="card event"><header><strong class="grow">Event {seq}</strong><button type="button" class="tiny plain" onClick={onClose}>Close</button></header>{event !== null && <JsonTree value={event} />}</div>;
}
