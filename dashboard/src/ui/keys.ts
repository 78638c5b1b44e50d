// Single keys and sequences. Never inside a field, never with a modifier, and not at all if somebody does not want them.

import { prefs } from "../data/prefs.ts";

/** What each does; one that says false did nothing, and the key means what it means to the browser. */
type Keys = Record<string, () => unknown>;
const layers: Keys[] = [];
let first = "";
let timer: ReturnType<typeof setTimeout> | undefined;

/** Listen to these until the result is called; the newest layer wins. In a layout effect: whoever sees a page can use it. */
export function onKey(keys: Keys): () => void {
  layers.push(keys);
  return () => void layers.splice(layers.indexOf(keys), 1);
}

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

document.addEventListener("keydown", (event) => {
  const keyed = event.ctrlKey || event.metaKey ? `mod+${event.key.toLowerCase()}` : event.key;
  if (event.altKey || event.isComposing) return;
  const always = keyed.startsWith("mod+") || event.key === "Escape";
  if (!always && (typing(event.target) || !prefs.value.keys)) return;
  if (event.key === "Escape" && (typing(event.target) || document.querySelector("dialog[open]"))) return;
  if (document.querySelector("dialog[open]") && !keyed.startsWith("mod+")) return;
  const sequence = first ? `${first} ${event.key}` : "";
  clearTimeout(timer);
  for (const keys of [...layers].reverse()) {
    const act = (sequence && keys[sequence]) || keys[keyed];
    if (act && act() !== false) {
      first = "";
      event.preventDefault();
      return;
    }
  }
  first = event.key === "g" || event.key === "c" ? event.key : "";
  timer = setTimeout(() => (first = ""), 1000);
});
