// The server's clock, and a pulse for ages and countdowns: once a second, and rarely while nobody looks.

import { signal } from "@preact/signals";

let ahead = 0;
let known = false;
export const now = signal<number>(Date.now());
export const serverNow = (): number => Date.now() + ahead;

/** The header has whole seconds, so only a difference that cannot be rounding counts. */
export function heardFrom(reply: Response, asked: number): void {
  const date = Date.parse(reply.headers.get("date") ?? "");
  if (Number.isNaN(date)) return;
  const difference = date + 500 - (asked + Date.now()) / 2;
  if (!known || Math.abs(difference - ahead) > 2000) {
    ahead = Math.abs(difference) < 1500 ? 0 : difference;
    known = true;
    now.value = serverNow();
  }
}

let frozen = false;
/** While nothing is heard, counters stand still. */
export const freeze = (yes: boolean): void => void (frozen = yes);

setInterval(() => {
  if (!frozen && !(document.hidden && Math.random() > 0.2)) now.value = serverNow();
}, 1000);
