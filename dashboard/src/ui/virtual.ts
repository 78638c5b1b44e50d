// Long lists: only what can be seen is there, and the row that has the focus.

import { Virtualizer, defaultRangeExtractor, elementScroll, measureElement, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import type { VirtualItem } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useState } from "preact/hooks";

export interface Virtual {
  /** Where each begins, from the beginning of the list. */
  items: Pick<VirtualItem, "index" | "start">[];
  height: number;
  show(index: number, align?: "auto" | "end"): void;
  /** For rows that are not all of the same height: how high this one is. */
  measure(row: HTMLElement | null): void;
}

export interface Lying {
  /** A row that stays, wherever one looks. */
  keep?: number;
  /** What is scrolled, if that is not the list itself. */
  inside?: string;
  /** What a row is, whatever its place. */
  key?: (index: number) => string | number;
}

const OVERSCAN = 8;

export function useVirtual(place: RefObject<HTMLElement | null>, count: number, size: number, { keep = -1, inside, key }: Lying = {}): Virtual {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const [margin, setMargin] = useState(0);
  const scroller = (): HTMLElement | null => (inside === undefined ? place.current : (place.current?.closest<HTMLElement>(inside) ?? null));
  const options = {
    count,
    getScrollElement: scroller,
    estimateSize: () => size,
    overscan: OVERSCAN,
    scrollMargin: margin,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    measureElement,
    ...(key === undefined ? {} : { getItemKey: key }),
    onChange: () => again(0),
    rangeExtractor: (range: Parameters<typeof defaultRangeExtractor>[0]) => {
      const seen = defaultRangeExtractor(range);
      return keep >= 0 && keep < count && !seen.includes(keep) ? [...seen, keep].sort((a, b) => a - b) : seen;
    },
  };
  const virtual = useMemo(() => new Virtualizer<HTMLElement, HTMLElement>(options), []);
  virtual.setOptions(options);
  useEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => {
    const [list, outer] = [place.current, scroller()];
    if (inside !== undefined && list && outer) setMargin(Math.round(list.getBoundingClientRect().top - outer.getBoundingClientRect().top + outer.scrollTop));
    virtual._willUpdate();
  });
  useLayoutEffect(() => virtual.measure(), [size]);
  return {
    items: virtual.getVirtualItems().map(({ index, start }) => ({ index, start: start - margin })),
    height: virtual.getTotalSize(),
    show: (index, align = "auto") => virtual.scrollToIndex(index, { align }),
    measure: virtual.measureElement,
  };
}
