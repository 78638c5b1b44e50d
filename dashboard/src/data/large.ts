// Values so large that reading, searching and comparing them is done beside the page. Who does it is set by the program
// that has somebody; without one it is done at once.

import type { Json } from "./api.ts";
import { pathsHolding } from "../logic/search.ts";

export const LARGE_BYTES = 64 * 1024;

/** One run of lines: in both, only before, or only after. */
export interface Run {
  sign: " " | "-" | "+";
  text: string;
}

export interface Helper {
  /** What the text says; it is kept under `key` to be searched. */
  parse(key: string, text: string): Promise<Json>;
  search(key: string, wanted: string, root: string): Promise<ReadonlySet<string>>;
  compare(before: string, after: string): Promise<readonly Run[]>;
}

let helper: Helper | null = null;
export const helped = (by: Helper): void => void (helper = by);

export const parse = async (key: string, text: string): Promise<Json> => (helper !== null && text.length > LARGE_BYTES ? helper.parse(key, text) : (JSON.parse(text) as Json));

/** Where it is; `key` names a value that was read as a large one. */
export const search = async (key: string | null, value: Json, wanted: string, root: string): Promise<ReadonlySet<string>> =>
  helper !== null && key !== null ? helper.search(key, wanted, root) : pathsHolding(value, wanted, root);

/** What changed, line by line. */
export const compare = async (before: string, after: string): Promise<readonly Run[]> =>
  helper === null ? [{ sign: "-", text: before }, { sign: "+", text: after }] : helper.compare(before, after);
