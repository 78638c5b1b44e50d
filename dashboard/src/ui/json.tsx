// A value as a tree: search, copy, copy as binding, raw, download. Text nodes only.

import { useEffect, useState } from "preact/hooks";
import type { Json, Payload } from "../data/api.ts";
import { LARGE_BYTES, parse, search } from "../data/large.ts";
import { raw } from "../data/session.ts";
import { columnsOf, isObject, partsOf, pathTo } from "../logic/search.ts";
import { bytes, visible } from "../logic/text.ts";
import { Icon } from "./marks.tsx";
import { Copy, Linked } from "./parts.tsx";

const CHUNK = 100;
const TEXT_MAX = 4000;
const WHOLE_BYTES = 256 * 1024;
const FIRST_BYTES = 64 * 1024;

export function LongText({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const long = text.length > TEXT_MAX;
  return (
    <>
      {long && !all ? <>{visible(text.slice(0, TEXT_MAX))}…</> : <Linked text={text} />}
      {long && <button type="button" class="tiny" onClick={() => setAll(!all)}>{all ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}</button>}
    </>
  );
}

function Scalar({ value }: { value: Json }) {
  if (typeof value === "string") return <span class="j-text">"<LongText text={value} />"</span>;
  return <span class={value === null ? "muted" : "j-word"}>{String(value)}</span>;
}

function Node({ name, value, path, depth, found }: { name: string | null; value: Json; path: string; depth: number; found: ReadonlySet<string> | null }) {
  const [open, setOpen] = useState(depth < 2);
  const [shown, setShown] = useState(CHUNK);
  const nested = Array.isArray(value) || isObject(value);
  const entries = partsOf(value);
  const inList = Array.isArray(value);
  const fitting = found ? entries.filter(([label]) => found.has(pathTo(path, label, inList))) : entries;
  const isOpen = open || (found !== null && fitting.length > 0);
  const label = name === null ? null : <span class="j-name">{visible(name)}</span>;
  if (!nested) return <div class="j-line">{label}{name !== null && <span class="muted">: </span>}<Scalar value={value} /><Tools value={value} path={path} /></div>;
  const size = Array.isArray(value) ? `${entries.length} ${entries.length === 1 ? "item" : "items"}` : `${entries.length} ${entries.length === 1 ? "field" : "fields"}`;
  return (
    <div class="j-node">
      <div class="j-line">
        <button type="button" class="twist plain" aria-expanded={isOpen} aria-label={`${name ?? "value"}, ${size}`} onClick={() => setOpen(!isOpen)}><Icon name={isOpen ? "down" : "right"} /></button>
        {label}{name !== null && <span class="muted">: </span>}<span class="muted">{Array.isArray(value) ? `[ ${size} ]` : `{ ${size} }`}</span><Tools value={value} path={path} />
      </div>
      {isOpen && (
        <div class="j-inside">
          {fitting.slice(0, shown).map(([inner, one]) => {
            const place = pathTo(path, inner, inList);
            return <Node key={inner} name={inner} value={one} path={place} depth={depth + 1} found={found} />;
          })}
          {fitting.length > shown && <button type="button" class="tiny" onClick={() => setShown(shown + CHUNK)}>{(fitting.length - shown).toLocaleString("en")} more</button>}
        </div>
      )}
    </div>
  );
}

const Tools = ({ value, path }: { value: Json; path: string }) => (
  <span class="j-tools"><Copy plain text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} label="Value" />{path && <Copy plain text={`\${${path}}`} label="Binding" />}</span>
);

const SHAPES = { tree: "Tree", table: "Table", raw: "Raw" } as const;

/** `large`: under which name the worker keeps it, if it does. */
export function JsonTree({ value, root = "", large = null }: { value: Json; root?: string; large?: string | null }) {
  const [wanted, setWanted] = useState("");
  const [found, setFound] = useState<ReadonlySet<string> | null>(null);
  const [shape, setShape] = useState<keyof typeof SHAPES>("tree");
  useEffect(() => {
    let here = true;
    if (wanted === "") setFound(null);
    else void search(large, value, wanted.toLowerCase(), root).then((paths) => here && setFound(paths));
    return () => {
      here = false;
    };
  }, [wanted, value]);
  const asText = shape === "raw";
  const columns = columnsOf(value);
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const simple = typeof value !== "object" || value === null;
  return (
    <div class="json">
      <div class="json-bar">
        {!simple && shape === "tree" && <input type="search" aria-label="Search in this value" placeholder="Search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />}
        <span class="grow" />
        {!simple && (["tree", ...(columns ? ["table"] as const : []), "raw"] as const).filter((one) => one !== shape).map((one) => <button type="button" class="tiny" key={one} onClick={() => setShape(one)}>{SHAPES[one]}</button>)}
        <Copy text={text} />
        <Download name="value.json" make={() => Promise.resolve(new Blob([text], { type: "application/octet-stream" }))} />
      </div>
      {asText ? <pre>{visible(text)}</pre> : shape === "table" && columns ? <Rows columns={columns} rows={value as { [name: string]: Json }[]} /> : typeof value === "string" && /^(diff |--- |Index: )/m.test(value) ? <Diff text={value} />
        : typeof value === "string" && value.includes("\n") ? <pre><LongText text={value} /></pre> : <Node name={null} value={value} path={root} depth={0} found={found} />}
    </div>
  );
}

function Rows({ columns, rows }: { columns: readonly string[]; rows: readonly { [name: string]: Json }[] }) {
  const [shown, setShown] = useState(CHUNK);
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="As a table">
      <table><thead><tr>{columns.map((one) => <th key={one}>{visible(one)}</th>)}</tr></thead>
        <tbody>{rows.slice(0, shown).map((row, n) => <tr key={n}>{columns.map((one) => <td key={one} class={typeof row[one] === "number" ? "n" : "wrap"}>{row[one] === undefined ? "" : visible(String(row[one]).slice(0, TEXT_MAX))}</td>)}</tr>)}</tbody></table>
      {rows.length > shown && <button type="button" class="tiny" onClick={() => setShown(shown + CHUNK)}>{(rows.length - shown).toLocaleString("en")} more</button>}
    </div>
  );
}

/** A unified diff, line by line. */
export const Diff = ({ text }: { text: string }) => (
  <pre class="diff">{text.split("\n").slice(0, 2000).map((line, n) => <span key={n} class={line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : line.startsWith("@@") ? "muted" : ""}>{visible(line)}{"\n"}</span>)}</pre>
);

export function Download({ name, make, label = "Download" }: { name: string; make: () => Promise<Blob>; label?: string }) {
  const save = async (): Promise<void> => {
    const url = URL.createObjectURL(await make());
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return <button type="button" class="tiny" onClick={() => void save()}><Icon name="download" />{label}</button>;
}

const IMAGES: readonly (readonly [string, readonly number[]])[] = [["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]], ["image/webp", [0x52, 0x49, 0x46, 0x46]]];
const IMAGE_BYTES = 4 * 1024 * 1024;

/** A recorded value: itself, or as much of it as can be shown. */
export function PayloadView({ task, payload, root = "" }: { task: string; payload: Payload; root?: string }) {
  return (
    <div class="payload">
      {payload.untrusted && <p class="small muted">From outside: nobody has vouched for it.</p>}
      {payload.artifact === undefined ? <JsonTree value={payload.value ?? null} root={root} /> : <Kept key={payload.artifact} task={task} digest={payload.artifact} payload={payload} root={root} />}
    </div>
  );
}

type Read = { tree: Json; large: string | null } | { text: string; cut: boolean } | { image: string } | { binary: true };

async function readKept(path: string, payload: Payload): Promise<Read> {
  const small = payload.bytes <= WHOLE_BYTES;
  const media = payload.media_type ?? "";
  if (media.startsWith("image/") && payload.bytes <= IMAGE_BYTES) {
    const body = new Uint8Array(await (await raw("GET", path)).arrayBuffer());
    const kind = IMAGES.find(([, magic]) => magic.every((byte, n) => body[n] === byte))?.[0];
    return kind === undefined ? { binary: true } : { image: URL.createObjectURL(new Blob([body], { type: kind })) };
  }
  const reply = await raw("GET", path, undefined, small ? {} : { range: `bytes=0-${FIRST_BYTES - 1}` });
  const text = await reply.text();
  if (small && (media.includes("json") || media === "")) {
    try {
      return { tree: await parse(path, text), large: text.length > LARGE_BYTES ? path : null };
    } catch {
      // not JSON after all: shown as text
    }
  }
  return text.includes("\u0000") ? { binary: true } : { text: text.slice(0, FIRST_BYTES), cut: !small };
}

function Kept({ task, digest, payload, root }: { task: string; digest: string; payload: Payload; root: string }) {
  const [read, setRead] = useState<Read | null>(null);
  const [error, setError] = useState<string | null>(null);
  const path = `/v1/tasks/${task}/artifacts/${digest}`;
  useEffect(() => {
    let here = true;
    readKept(path, payload).then((found) => here && setRead(found), (problem: Error) => here && setError(problem.message));
    return () => {
      here = false;
    };
  }, [path]);
  return (
    <>
      <div class="json-bar"><span class="muted small grow">{bytes(payload.bytes)}{payload.media_type ? ` · ${payload.media_type}` : ""}</span><Download name={digest.replace(":", "-")} make={async () => new Blob([await (await raw("GET", path)).arrayBuffer()], { type: "application/octet-stream" })} /></div>
      {error !== null && <p class="muted">{error.includes("no such") || error.includes("removed") ? "Removed by retention." : visible(error)}</p>}
      {read === null && error === null && <p class="muted">Reading…</p>}
      {read && "tree" in read && <JsonTree value={read.tree} root={root} large={read.large} />}
      {read && "text" in read && <>{read.cut && <p class="small muted">The first {bytes(FIRST_BYTES)}; download the rest.</p>}<pre class="first">{visible(read.text)}</pre></>}
      {read && "image" in read && <img src={read.image} alt="The output as a picture" />}
      {read && "binary" in read && <p class="muted">This can only be downloaded.</p>}
    </>
  );
}
