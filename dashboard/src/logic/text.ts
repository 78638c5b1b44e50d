// Text from strangers, made safe to read: what cannot be seen is shown, and nothing else is changed.

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** Control, bidirectional and zero-width characters as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (found) => `⟨U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** A line of a log: terminal sequences are removed, the rest is made visible. */
export const logLine = (text: string): string => visible(text.replace(ESCAPES, ""));

export interface Link {
  href: string;
  text: string;
}

/** A link only if it is one: http or https, and what is shown is where it goes, its host in plain letters. */
export function link(text: string): Link | null {
  if (!/^https?:\/\/[^\s]+$/i.test(text)) return null;
  try {
    const url = new URL(text);
    if ((url.protocol !== "http:" && url.protocol !== "https:") || url.username || url.password) return null;
    return { href: url.href, text: visible(url.href) };
  } catch {
    return null;
  }
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${(n / 1024).toFixed(n < 10 * 1024 ? 1 : 0)} KiB`;
  return `${(n / 1024 ** 2).toFixed(n < 10 * 1024 ** 2 ? 1 : 0)} MiB`;
}

export const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const shortId = (id: string): string => id.slice(0, 10);
