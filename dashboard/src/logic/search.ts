// Where in a value something is: the places that hold it, and those on the way to them. Pure; also run by the worker.

import type { Json } from "../data/api.ts";

const WORD = /^[A-Za-z_][A-Za-z0-9_]*$/;

export const isObject = (value: Json): value is { [name: string]: Json } => typeof value === "object" && value !== null && !Array.isArray(value);

/** The path of a part, as a binding would name it. */
export const pathTo = (path: string, name: string, inList: boolean): string => (inList ? `${path}[${name}]` : WORD.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`);

export const partsOf = (value: Json): [string, Json][] => (Array.isArray(value) ? value.map((one, n) => [String(n), one]) : isObject(value) ? Object.entries(value) : []);

/** Paths of everything that holds `wanted`, in a name or a value; `wanted` in small letters. */
export function pathsHolding(value: Json, wanted: string, root = ""): Set<string> {
  const found = new Set<string>();
  const look = (one: Json, path: string): boolean => {
    if (typeof one !== "object" || one === null) return String(one).toLowerCase().includes(wanted);
    const inList = Array.isArray(one);
    let any = false;
    for (const [name, part] of partsOf(one)) {
      const place = pathTo(path, name, inList);
      if (look(part, place) || (!inList && name.toLowerCase().includes(wanted))) {
        found.add(place);
        any = true;
      }
    }
    return any;
  };
  look(value, root);
  return found;
}

/** Names of the columns, if a value is a table: a list of flat objects. */
export function columnsOf(value: Json): string[] | null {
  if (!Array.isArray(value) || value.length < 2 || !value.every(isObject)) return null;
  const names = new Set<string>();
  for (const row of value) {
    for (const [name, cell] of Object.entries(row)) {
      if (typeof cell === "object" && cell !== null) return null;
      names.add(name);
    }
  }
  return names.size > 0 && names.size <= 12 ? [...names] : null;
}
