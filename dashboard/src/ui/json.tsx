// A value as a tree: search, copy, copy as binding, raw, download. Text nodes only.

import { useState } from "preact/hooks";
import type { Json, Payload } from "../data/api.ts";
import { raw } from "../data/session.ts";
import { bytes, visible } from "../logic/text.ts";
import { useEffect } from "preact/hooks";
import { Icon } from "./marks.tsx";
import { Copy, Linked } from "./parts.tsx";

const CHUNK = 100;
const TEXT_MAX = 4000;
const WHOLE_BYTES = 256 * 1024;
const FIRST_BYTES = 64 * 1024;

const isObject = (value: Json): value is { [name: string]: Json } => typeof value === "object" && value !== null && !Array.isArray(value);
const key = (name: string): string => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);

function holds(value: Json, wanted: string): boolean {
  if (Array.isArray(value)) return value.some((one) => holds(one, wanted));
  if (isObject(value)) return Object.entries(value).some(([name, one]) => name.toLowerCase().includes(wanted) || holds(one, wanted));
  return String(value).toLowerCase().includes(wanted);
}

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

function Node({ name, value, path, depth, wanted }: { name: string | null; value: Json; path: string; depth: number; wanted: string }) {
  const [open, setOpen] = useState(depth < 2);
  const [shown, setShown] = useState(CHUNK);
  const nested = Array.isArray(value) || isObject(value);
  const entries: [string, Json][] = Array.isArray(value) ? value.map((one, n) => [String(n), one]) : isObject(value) ? Object.entries(value) : [];
  const found = wanted ? entries.filter(([label, one]) => label.toLowerCase().includes(wanted) || holds(one, wanted)) : entries;
  const isOpen = open || (wanted !== "" && found.length > 0);
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
          {found.slice(0, shown).map(([inner, one]) => (
            <Node key={inner} name={inner} value={one} path={Array.isArray(value) ? `${path}[${inner}]` : path + key(inner)} depth={depth + 1} wanted={wanted} />
          ))}
          {found.length > shown && <button type="button" class="tiny" onClick={() => setShown(shown + CHUNK)}>{(found.length - shown).toLocaleString("en")} more</button>}
        </div>
      )}
    </div>
  );
}

const Tools = ({ value, path }: { value: Json; path: string }) => (
  <span class="j-tools"><Copy plain text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} label="Value" />{path && <Copy plain text={`\${${path}}`} label="Binding" />}</span>
);

export function JsonTree({ value, root = "" }: { value: Json; root?: string }) {
  const [wanted, setWanted] = useState("");
  const [asText, setAsText] = useState(false);
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const simple = typeof value !== "object" || value === null;
  return (
    <div class="json">
      <div class="json-bar">
        {!simple && !asText && <input type="search" aria-label="Search in this value" placeholder="Search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />}
        <span class="grow" />
        {!simple && <button type="button" class="tiny" aria-pressed={asText} onClick={() => setAsText(!asText)}>{asText ? "Tree" : "Raw"}</button>}
        <Copy text={text} />
        <Download name="value.json" make={() => Promise.resolve(new Blob([text], { type: "application/octet-stream" }))} />
      </div>
      {asText ? <pre>{visible(text)}</pre> : typeof value === "string" && /^(diff |--- |Index: )/m.test(value) ? <Diff text={value} />
        : typeof value === "string" && value.includes("\n") ? <pre><LongText text={value} /></pre> : <Node name={null} value={value} path={root} depth={0} wanted={wanted.toLowerCase()} />}
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

type Read = { tree: Json } | { text: string; cut: boolean } | { image: string } | { binary: true };

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
      return { tree: JSON.parse(text) as Json };
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
      {read && "tree" in read && <JsonTree value={read.tree} root={root} />}
      {read && "text" in read && <>{read.cut && <p class="small muted">The first {bytes(FIRST_BYTES)}; download the rest.</p>}<pre class="first">{visible(read.text)}</pre></>}
      {read && "image" in read && <img src={read.image} alt="The output as a picture" />}
      {read && "binary" in read && <p class="muted">This can only be downloaded.</p>}
    </>
  );
}
