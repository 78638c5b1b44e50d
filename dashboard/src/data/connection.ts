// How it stands with the connection, as one word. A gap of less than two seconds is none.

import { computed, signal } from "@preact/signals";
import type { Connection } from "../client/client.ts";
import type { Health } from "./api.ts";
import { prefix } from "./base.ts";
import { freeze, serverNow } from "./clock.ts";
import { signedOut } from "./session.ts";

const GAP_MS = 2000;
const OFFLINE_MS = 30_000;

export type Word = "live" | "live (polling)" | "reconnecting" | "offline" | "recovering" | "signed out";

interface Lost {
  since: number;
  until: number;
}

const lost = signal<Lost | null>(null);
const polling = signal(false);
const pulse = signal(0);
export const recovering = signal<Health | null>(null);
/** The version that answers, and the one this page was made for. */
export const servedVersion = signal<string | null>(null);
export const firstVersion = signal<string | null>(null);
export const asOf = signal<number>(serverNow());

export function heard(connection: Connection): void {
  if (connection.state === "waiting") {
    if (lost.value === null) asOf.value = serverNow();
    lost.value = { since: lost.value?.since ?? Date.now(), until: connection.until };
  } else {
    lost.value = null;
    recovering.value = null;
    polling.value = connection.state === "polling";
  }
}

export const word = computed<Word>(() => {
  void pulse.value;
  if (signedOut.value) return "signed out";
  const gone = lost.value;
  if (gone === null) return navigator.onLine ? (polling.value ? "live (polling)" : "live") : "offline";
  const gap = Date.now() - gone.since;
  if (recovering.value !== null) return "recovering";
  if (gap < GAP_MS) return "live";
  return gap > OFFLINE_MS || !navigator.onLine ? "offline" : "reconnecting";
});

export const connected = computed(() => word.value === "live" || word.value === "live (polling)");
export const nextTryS = computed(() => {
  void pulse.value;
  return lost.value === null ? 0 : Math.max(0, Math.ceil((lost.value.until - Date.now()) / 1000));
});

/** Waiting ends when the network comes back; this is how to say so by hand. */
export const tryNow = (): void => void window.dispatchEvent(new Event("online"));

let asking = false;
async function look(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    const reply = await fetch(`${prefix}/v1/health`);
    const health = (await reply.json()) as Health;
    recovering.value = health.ready ? null : health;
  } catch {
    recovering.value = null;
  } finally {
    asking = false;
  }
}

setInterval(() => {
  freeze(!connected.value);
  if (lost.value === null) return;
  pulse.value += 1;
  if (pulse.value % 8 === 0 && Date.now() - lost.value.since > GAP_MS) void look();
}, 250);
