// What somebody likes, who somebody is, and leaving.

import { prefer, prefs } from "../data/prefs.ts";
import type { Prefs } from "../data/prefs.ts";
import { owner, signOut } from "../data/session.ts";
import { visible } from "../logic/text.ts";
import { Dialog } from "./parts.tsx";

const CHOICES: readonly { name: keyof Prefs; label: string; values: readonly string[] }[] = [
  { name: "theme", label: "Theme", values: ["system", "light", "dark"] },
  { name: "density", label: "Rows", values: ["compact", "roomy"] },
  { name: "times", label: "Times on the axis", values: ["elapsed", "clock"] },
];

export function Settings({ onClose }: { onClose: () => void }) {
  const notify = async (wanted: boolean): Promise<void> => {
    const granted = wanted && "Notification" in window && (await Notification.requestPermission()) === "granted";
    prefer({ notify: granted });
  };
  const who = owner.value;
  return (
    <Dialog title="Settings" onClose={onClose}>
      {CHOICES.map(({ name, label, values }) => (
        <fieldset class="field" key={name}><legend>{label}</legend><div class="choices">{values.map((value) => <label key={value}><input type="radio" name={name} checked={prefs.value[name] === value} onChange={() => prefer({ [name]: value } as Partial<Prefs>)} />{value}</label>)}</div></fieldset>
      ))}
      <div class="field">
        <label class="check"><input type="checkbox" checked={prefs.value.notify} onChange={(event) => void notify(event.currentTarget.checked)} />Tell me outside of this page when something needs me or has ended</label>
        <label class="check"><input type="checkbox" checked={prefs.value.keys} onChange={(event) => prefer({ keys: event.currentTarget.checked })} />Single keys do something (press <kbd>?</kbd> to see which)</label>
      </div>
      {who && <section><h3>Signed in</h3><p>{visible(who.actor.id)} <span class="muted">({who.actor.kind})</span>, owner {visible(who.owner)}; may {who.scopes.join(", ")}</p></section>}
      <footer><button type="button" onClick={() => void signOut().then(onClose)}>Sign out</button><button type="button" class="primary" onClick={onClose}>Done</button></footer>
    </Dialog>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl K", "find and do anything"], ["?", "these keys"], ["/", "filter"], ["j k", "next and previous row"], ["→ ←", "expand, collapse"], ["Enter Esc", "open, back"],
  ["g t i p h s", "go to Tasks, Inbox, Plans, Health, Stats"], [".", "next problem"], ["l", "follow"], ["f", "fit the timeline"], ["1–5", "tabs"],
  ["c i l c", "copy id, link, command"], ["p", "pause or resume"], ["r", "retry"], ["⇧F", "fork"], ["⇧C", "cancel"], ["Ctrl Enter", "send the decision"],
];

export const Shortcuts = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}><dl class="keys">{KEYS.map(([keys, what]) => <div key={keys}><dt>{keys.split(" ").map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{what}</dd></div>)}</dl><footer><button type="button" autofocus onClick={onClose}>Close</button></footer></Dialog>
);
