// Something read from the server and read again when it may have changed: never twice at once, never too often.

import { signal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import { Refused } from "../client/client.ts";
import { connected } from "./connection.ts";

export interface Resource<Value> {
  value: Signal<Value | null>;
  error: Signal<Error | null>;
  /** Soon, but not more often than allowed. */
  stale(): void;
  /** Now, whatever was said before. */
  refresh(): Promise<void>;
  stop(): void;
}

export function resource<Value>(read: () => Promise<Value>, apartMs = 400): Resource<Value> {
  const value = signal<Value | null>(null);
  const error = signal<Error | null>(null);
  let reading: Promise<void> | null = null;
  let again = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = 0;
  let stopped = false;

  async function once(): Promise<void> {
    last = Date.now();
    try {
      const found = await read();
      if (stopped) return;
      value.value = found;
      error.value = null;
    } catch (problem) {
      if (stopped) return;
      const gone = problem instanceof Refused;
      if (gone && problem.status === 401) return; // signing in comes first, then it is read again
      if (gone && problem.status === 503) later(2000);
      else if (gone || (value.value === null && connected.value)) error.value = problem as Error;
      if (!gone) later(2000);
    }
  }
  function later(ms: number): void {
    if (stopped) return;
    clearTimeout(timer);
    timer = setTimeout(() => void refresh(), ms);
  }
  function refresh(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (reading !== null) {
      again = true;
      return reading;
    }
    reading = once().finally(() => {
      reading = null;
      if (again) {
        again = false;
        stale();
      }
    });
    return reading;
  }
  function stale(): void {
    if (stopped || timer !== undefined) return;
    if (reading !== null) {
      again = true;
      return;
    }
    const apart = document.hidden ? Math.max(1000, apartMs) : apartMs;
    timer = setTimeout(() => {
      timer = undefined;
      void refresh();
    }, Math.max(0, last + apart - Date.now()));
  }
  return {
    value, error, stale, refresh,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
