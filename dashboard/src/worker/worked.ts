// The page's end of the worker. It is started when it is first needed, from the one address that the policy lets through.

import type { Json } from "../data/api.ts";
import type { Helper, Run } from "../data/large.ts";
import address from "./worker.ts?worker&url";

type Question = { what: "parse"; key: string; text: string } | { what: "search"; key: string; wanted: string; root: string } | { what: "compare"; before: string; after: string };
export type Asked = Question & { id: number };
export type Told = { id: number; value: Json | ReadonlySet<string> | readonly Run[] } | { id: number; wrong: string };

interface Policies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

/** Nothing else may be started as a script, whoever asks. */
function trusted(url: string): string {
  const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  const only = (asked: string): string => {
    if (asked !== url) throw new TypeError("this is not the worker");
    return asked;
  };
  return policies === undefined ? url : policies.createPolicy("everstep", { createScriptURL: only }).createScriptURL(url);
}

let worker: Worker | null = null;
let last = 0;
const waiting = new Map<number, (told: Told) => void>();

function ask<Reply>(question: Question): Promise<Reply> {
  if (worker === null) {
    worker = new Worker(trusted(address), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Told>) => {
      waiting.get(data.id)?.(data);
      waiting.delete(data.id);
    });
  }
  const id = ++last;
  worker.postMessage({ ...question, id } satisfies Asked);
  return new Promise((done, failed) => waiting.set(id, (told) => ("wrong" in told ? failed(new Error(told.wrong)) : done(told.value as Reply))));
}

export const worked: Helper = {
  parse: (key, text) => ask<Json>({ what: "parse", key, text }),
  search: (key, wanted, root) => ask<ReadonlySet<string>>({ what: "search", key, wanted, root }),
  compare: (before, after) => ask<readonly Run[]>({ what: "compare", before, after }),
};
