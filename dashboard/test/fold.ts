// Fold journals as a page does and print what is known after every event: `node fold.ts < journals.json`. For tests.

import { readFileSync } from "node:fs";
import type { JournalEvent } from "../src/client/rules.ts";
import { empty, fold } from "../src/logic/fold.ts";

const journals = JSON.parse(readFileSync(0, "utf8")) as JournalEvent[][];
const told = journals.map((journal) => {
  const view = empty();
  return journal.map((event) => {
    fold(view, event);
    const before = view.seq;
    fold(view, event); // what came before is dropped
    fold(view, { ...event, seq: event.seq + 2, type: "task.failed" }); // and what comes after a hole is refused
    if (view.seq !== before) throw new Error("a duplicate or a hole was taken");
    const steps = [...view.steps.values()].map((step) => [step.id, [step.status, step.phase, step.startedAt, step.endedAt, step.attempts]]);
    return { status: view.status, generation: view.generation, steps: Object.fromEntries(steps) };
  });
});
console.log(JSON.stringify(told));
