// The worker: reads, searches and compares large values, so that the page stays at hand.

import { diffLines } from "diff";
import type { Json } from "../data/api.ts";
import type { Run } from "../data/large.ts";
import { pathsHolding } from "../logic/search.ts";
import type { Asked, Told } from "./worked.ts";

const KEPT = 4;
const kept = new Map<string, Json>();

function keep(key: string, value: Json): Json {
  kept.delete(key);
  kept.set(key, value);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value ?? "");
  return value;
}

function answer(asked: Asked): Json | ReadonlySet<string> | readonly Run[] {
  switch (asked.what) {
    case "parse":
      return keep(asked.key, JSON.parse(asked.text) as Json);
    case "search":
      return pathsHolding(kept.get(asked.key) ?? null, asked.wanted, asked.root);
    case "compare":
      return diffLines(asked.before, asked.after).map((one): Run => ({ sign: one.added ? "+" : one.removed ? "-" : " ", text: one.value }));
  }
}

addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  try {
    postMessage({ id: data.id, value: answer(data) } satisfies Told);
  } catch (error) {
    postMessage({ id: data.id, wrong: String(error) } satisfies Told);
  }
});
