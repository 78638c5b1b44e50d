// What somebody likes, kept in this browser.

import { effect, signal } from "@preact/signals";

export interface Prefs {
  theme: "system" | "light" | "dark";
  density: "compact" | "roomy";
  times: "elapsed" | "clock";
  notify: boolean;
  keys: boolean;
}

const KEY = "everstep.prefs";
const USUAL: Prefs = { theme: "system", density: "compact", times: "elapsed", notify: false, keys: true };

function read(): Prefs {
  try {
    return { ...USUAL, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Prefs>) };
  } catch {
    return USUAL;
  }
}

export const prefs = signal<Prefs>(read());
export const prefer = (change: Partial<Prefs>): void => void (prefs.value = { ...prefs.value, ...change });

effect(() => {
  const { theme, density } = prefs.value;
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  root.dataset.density = density;
  try {
    localStorage.setItem(KEY, JSON.stringify(prefs.value));
  } catch {
    // kept until this page is closed
  }
});
