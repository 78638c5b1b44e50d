// Lengths and ages in words. No clock: times come in as milliseconds.

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const instant = (text: string | null | undefined): number | null => (text ? Date.parse(text) : null);

/** A measured length: "41.2s", "3m40s", "1h20m". */
export function length(ms: number): string {
  if (ms < 950) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 1 : 0)}s`;
  if (ms < HOUR) {
    const seconds = Math.round((ms % MINUTE) / SECOND) % 60;
    return `${Math.floor(ms / MINUTE)}m${seconds ? `${seconds}s` : ""}`;
  }
  if (ms < 2 * DAY) {
    const minutes = Math.floor((ms % HOUR) / MINUTE);
    return `${Math.floor(ms / HOUR)}h${minutes ? `${minutes}m` : ""}`;
  }
  return `${Math.floor(ms / DAY)}d`;
}

/** How long ago, roughly: "12 s", "8 min", "3 h", "5 d". */
export function age(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

export function clock(ms: number, seconds = true): string {
  const two = (n: number): string => String(n).padStart(2, "0");
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

/** A time as somebody would say it now: today the clock alone, else with its day. */
export function when(ms: number, now: number): string {
  const at = new Date(ms);
  if (new Date(now).toDateString() === at.toDateString()) return clock(ms);
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")} ${clock(ms, false)}`;
}
