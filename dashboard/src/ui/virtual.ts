// Long lists: only what can be seen is there, and the row that has the focus.

import { Virtualizer, elementScroll, observeElementOffset, observeElementRect, defaultRangeExtractor } from "@tanstack/virtual-core";
import type { VirtualItem } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer } from "preact/hooks";

export interface Virtual {
  items: VirtualItem[];
  height: number;
  show(index: number, align?: "auto" | "end"): void;
}

export function useVirtual(place: RefObject<HTMLElement | null>, count: number, size: number, keep = -1): Virtual {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const options = {
    count,
    getScrollElement: () => place.current,
    estimateSize: () => size,
    overscan: 8,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => again(0),
    rangeExtractor: (range: Parameters<typeof defaultRangeExtractor>[0]) => {
      const seen = defaultRangeExtractor(range);
      return keep >= 0 && keep < count && !seen.includes(keep) ? [...seen, keep].sort((a, b) => a - b) : seen;
    },
  };
  const virtual = useMemo(() => new Virtualizer<HTMLElement, HTMLElement>(options), []);
  virtual.setOptions(options);
  useEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  useLayoutEffect(() => virtual.measure(), [size]);
  return { items: virtual.getVirtualItems(), height: virtual.getTotalSize(), show: (index, align = "auto") => virtual.scrollToIndex(index, { align }) };
}
