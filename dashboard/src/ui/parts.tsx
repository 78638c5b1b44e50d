// Small parts that every page uses.

import type { ComponentChildren } from "preact";
import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused } from "../client/client.ts";
import type { ApiError } from "../data/api.ts";
import { at } from "../data/base.ts";
import { visible, link as linkOf } from "../logic/text.ts";
import { now } from "../data/clock.ts";
import { age, instant, when } from "../logic/times.ts";
import { Icon } from "./marks.tsx";

/** Text of a stranger. */
export const Said = ({ text }: { text: string }) => <>{visible(text)}</>;

/** Text of a stranger that is a link if it is exactly one. */
export function Linked({ text }: { text: string }) {
  const found = linkOf(text);
  return found === null ? <Said text={text} /> : <a href={found.href} target="_blank" rel="noopener noreferrer">{found.text}</a>;
}

/** How long ago, with the moment itself on demand. */
export function Ago({ time, suffix = "" }: { time: string; suffix?: string }) {
  const ms = instant(time) ?? 0;
  return <time dateTime={time} title={when(ms, now.value)}>{age(now.value - ms)}{suffix}</time>;
}

export const At = ({ time }: { time: string }) => <time dateTime={time} title={time}>{when(instant(time) ?? 0, now.value)}</time>;

export const To = ({ path, children, ...more }: { path: string; children: ComponentChildren; class?: string; title?: string; "aria-current"?: "page" | undefined }) => (
  <a href={at(path)} {...more}>{children}</a>
);

export function Copy({ text, label = "Copy", plain = false }: { text: string; label?: string; plain?: boolean }) {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      setDone(false);
    }
  };
  return <button type="button" class={`tiny ${plain ? "plain" : ""}`} onClick={() => void copy()}><Icon name="copy" />{done ? "Copied" : label}</button>;
}

/** What went wrong and what to do about it. */
export function ErrorCard({ error, children }: { error: ApiError | Error; children?: ComponentChildren }) {
  const refused = error instanceof Refused ? (error.error as Partial<ApiError>) : error instanceof Error ? { message: error.message } : error;
  const wait = error instanceof Refused ? error.retryAfterS : null;
  return (
    <div class="card error-card" role="alert">
      <p><strong><Said text={refused.message ?? "something went wrong"} /></strong>{refused.code && <code class="tag">{refused.code}</code>}</p>
      {refused.what_to_do && <p class="muted"><Said text={refused.what_to_do} /></p>}
      {wait !== null && <RetryIn seconds={wait} />}
      {refused.cause && <p class="small muted">because: <Said text={refused.cause.message} /></p>}
      {children}
      {refused.id && <p class="small muted mono">{refused.id}</p>}
    </div>
  );
}

function RetryIn({ seconds }: { seconds: number }) {
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    const timer = setInterval(() => setLeft((before) => Math.max(0, before - 1)), 1000);
    return () => clearInterval(timer);
  }, []);
  return <p class="small muted">{left > 0 ? `try again in ${left} s; what you typed is kept` : "try again now; what you typed is kept"}</p>;
}

/** A dialog of the platform: it traps focus and gives it back. */
export function Dialog({ title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    place.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={place} class={wide ? "wide" : ""} aria-label={title} onCancel={(event) => { event.preventDefault(); onClose(); }}
      onClick={(event) => { if (event.target === place.current) onClose(); }}>
      <div class="body">
        <header><h2 class="grow">{title}</h2><button type="button" class="plain" aria-label="Close" onClick={onClose}><Icon name="close" /></button></header>
        {children}
      </div>
    </dialog>
  );
}

/** One part that fails does not take the page with it. */
export class Panel extends Component<{ name: string; children: ComponentChildren }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };
  static override getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }
  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div class="note bad" role="alert">
        <span class="grow">This panel failed: {this.props.name}</span>
        <Copy text={`${error.message}\n${error.stack ?? ""}`} label="Copy details" />
        <button type="button" class="tiny" onClick={() => this.setState({ error: null })}>Reload panel</button>
      </div>
    );
  }
}

/** A value against its maximum, in words and as a bar. */
export function Meter({ label, used, max, say = (n) => n.toLocaleString("en", { maximumFractionDigits: 1 }) }: { label: string; used: number; max: number; say?: (n: number) => string }) {
  const share = max > 0 ? Math.min(1, used / max) : 0;
  const words = `${say(used)} of ${say(max)}`;
  return (
    <div class="metered">
      <div class="metered-words"><span>{label}</span><span class="muted">{words}</span></div>
      <div class={`meter${share >= 0.8 ? " high" : ""}`} role="meter" aria-label={label} aria-valuenow={used} aria-valuemin={0} aria-valuemax={max} aria-valuetext={words}>
        <i style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}

/** One live region for the whole page; never more than once in five seconds. */
const queue: string[] = [];
let spoken = 0;
let region: HTMLElement | null = null;
export function announce(text: string): void {
  queue.push(text);
  const speak = (): void => {
    if (region && queue.length) {
      region.textContent = queue.splice(0).slice(-3).join(". ");
      spoken = Date.now();
    }
  };
  setTimeout(speak, Math.max(100, spoken + 5000 - Date.now()));
}
export const LiveRegion = () => <div class="hidden" aria-live="polite" ref={(found) => void (region = found)} />;
