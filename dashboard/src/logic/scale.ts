// Where a moment stands on the axis. Long stretches in which nothing happened are folded into a short, labelled break.

export interface Piece {
  from: number;
  to: number;
  x0: number;
  x1: number;
  folded: boolean;
}

export interface Scale {
  from: number;
  to: number;
  pieces: Piece[];
}

const SHARE = 0.2; // a gap of more than this share of the whole is folded
const BREAK = 0.06; // and then takes so much of the width

/** Stretches in which something was being done, joined. */
export function busy(spans: readonly (readonly [number, number])[]): [number, number][] {
  const joined: [number, number][] = [];
  for (const [from, to] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

export function scale(spans: readonly (readonly [number, number])[], from: number, to: number, unfolded: ReadonlySet<number> = new Set()): Scale {
  const end = Math.max(to, from + 1);
  const whole = end - from;
  const gaps: [number, number][] = [];
  let last = from;
  for (const [begin, stop] of busy(spans)) {
    if (begin - last > SHARE * whole) gaps.push([last, begin]);
    last = Math.max(last, Math.min(stop, end));
  }
  if (end - last > SHARE * whole) gaps.push([last, end]);
  const folded = gaps.filter(([begin]) => !unfolded.has(begin));
  const work = whole - folded.reduce((sum, [begin, stop]) => sum + stop - begin, 0);
  const room = 1 - BREAK * folded.length;
  const pieces: Piece[] = [];
  let [at, x] = [from, 0];
  const add = (stop: number, width: number, isFolded: boolean): void => {
    if (stop > at) pieces.push({ from: at, to: stop, x0: x, x1: x + width, folded: isFolded });
    [at, x] = [stop, x + width];
  };
  for (const [begin, stop] of folded) {
    add(begin, work > 0 ? ((begin - at) / work) * room : 0, false);
    add(stop, BREAK, true);
  }
  add(end, 1 - x, false);
  return { from, to: end, pieces };
}

/** 0 at the left, 1 at the right. */
export function place(scale: Scale, at: number): number {
  for (const piece of scale.pieces) {
    if (at <= piece.to) return at <= piece.from ? piece.x0 : piece.x0 + ((at - piece.from) / (piece.to - piece.from)) * (piece.x1 - piece.x0);
  }
  return 1;
}

const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];

/** Round moments for an axis of about so many marks. */
export function ticks(scale: Scale, many: number): number[] {
  const shown = scale.pieces.filter((piece) => !piece.folded);
  const span = shown.reduce((sum, piece) => sum + piece.to - piece.from, 0);
  const step = STEPS_MS.find((one) => span / one <= many) ?? 864e5 * Math.ceil(span / many / 864e5);
  const found: number[] = [];
  for (const piece of shown) {
    for (let at = Math.ceil((piece.from - scale.from) / step) * step; scale.from + at <= piece.to && found.length < 100; at += step) found.push(scale.from + at);
  }
  return found.filter((at, index) => index === 0 || place(scale, at) - place(scale, found[index - 1] ?? at) > 0.04);
}
