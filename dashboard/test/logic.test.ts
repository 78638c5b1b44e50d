// What can be tested without a browser: words of an estimate, the axis, the filter, safe text, forms.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Steady, because, range, rough, say } from "../src/logic/estimate.ts";
import type { Estimate } from "../src/logic/estimate.ts";
import { inWords, parse } from "../src/logic/filter.ts";
import { hold } from "../src/logic/held.ts";
import { busy, place, scale, ticks } from "../src/logic/scale.ts";
import { changes, fromField, kindOf, toField } from "../src/logic/schema.ts";
import { ofStep, ofTask } from "../src/logic/status.ts";
import { link, logLine, visible } from "../src/logic/text.ts";

const estimate = (p10: number, p50: number, p90: number, more: Partial<Estimate> = {}): Estimate => ({ p10, p50, p90, basis: "history", n: 23, waiting_on: null, as_of: "", ...more });

test("seconds are said as somebody would", () => {
  const said: [number, string][] = [[3, "a few seconds"], [12, "10 s"], [63, "65 s"], [120, "2 min"], [160, "2½ min"], [700, "12 min"], [4800, "1 h 20 min"], [7200, "2 h"]];
  for (const [seconds, words] of said) assert.equal(rough(seconds), words);
  assert.equal(range(60 * 11, 60 * 14), "11–14 min");
  assert.equal(range(4, 130), "up to 2 min");
});

test("what is left: with its range and where it is from", () => {
  assert.equal(say(estimate(60, 120, 240), 1, 5, 0, new Steady()).text, "about 2 min left, likely 1–4 min · from 23 tasks");
  assert.match(say(estimate(60, 120, 240, { basis: "prior" }), 1, 5, 0, new Steady()).text, /first guess$/);
  assert.deepEqual(say(null, 3, 8, 0, new Steady()), { text: "no estimate yet; 3 of 8 steps done", short: "no estimate yet", tone: "none" });
});

test("waiting for somebody stands still; past the usual is said so", () => {
  assert.deepEqual(say(estimate(50, 100, 200, { waiting_on: "person" }), 4, 5, 999, new Steady()), { text: "waiting for you · 1m40s of work after that", short: "waiting for you", tone: "frozen" });
  assert.equal(say(estimate(60, 120, 240), 1, 5, 300, new Steady()).text, "longer than usual (usually under 4 min)");
});

test("in a list little room is left for what keeps a task", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  assert.equal(because({ kind: "retry", until: "2026-01-01T00:00:04Z" }, now), "next try in 4 s");
  assert.equal(because({ kind: "breaker", until: "2026-01-01T00:05:00Z" }, now), "waiting for a breaker · 5 min");
  assert.equal(because({ kind: "slot", until: null }, now), "waiting for a free slot");
  assert.equal(because({ kind: "person", until: null }, now), null);
  assert.equal(say(estimate(60, 120, 240), 1, 5, 0, new Steady()).short, "about 2 min left, likely 1–4 min");
});

test("it counts down, and words change only when the middle has gone far enough", () => {
  const steady = new Steady();
  assert.equal(steady.next(100), 100);
  assert.equal(steady.next(90), 100);
  assert.equal(steady.next(84), 84);
});

test("a long gap is folded, and unfolds", () => {
  assert.deepEqual(busy([[5, 6], [0, 2], [1, 3]]), [[0, 3], [5, 6]]);
  const folded = scale([[0, 10], [90, 100]], 0, 100);
  assert.deepEqual(folded.pieces.map((piece) => piece.folded), [false, true, false]);
  assert.ok(Math.abs(place(folded, 10) - 0.47) < 0.01);
  assert.equal(place(folded, 100), 1);
  const whole = scale([[0, 10], [90, 100]], 0, 100, new Set([10]));
  assert.equal(whole.pieces.length, 1);
  assert.equal(place(whole, 50), 0.5);
  for (let at = 0, last = -1; at <= 100; at += 1) {
    assert.ok(place(folded, at) >= last);
    last = place(folded, at);
  }
  assert.ok(ticks(scale([[0, 60_000]], 0, 60_000), 5).length >= 4);
});

test("the filter box: words with a colon are filters", () => {
  assert.deepEqual(parse('status:failed plan:brief "two words" x'), { status: "failed", plan: "brief", q: "two words x" });
  assert.deepEqual(parse("needs:you since:24h"), { needs_you: "1", since: "24h" });
  assert.deepEqual(parse("https://a.test/x"), { q: "https://a.test/x" });
  assert.equal(inWords(parse("status:failed abc")), "status failed, “abc”");
});

test("what cannot be seen is spelled out, and only real links are links", () => {
  assert.equal(visible("a\u202eb\u200bc\u0007"), "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0007⟩");
  assert.equal(visible("tabs\tand\nlines"), "tabs\tand\nlines");
  assert.equal(logLine("\u001b[31mred\u001b[0m \u001b]8;;https://x.test\u0007link\u001b]8;;\u0007"), "red link");
  assert.equal(link("javascript:alert(1)"), null);
  assert.equal(link("https://user:pass@x.test/"), null);
  assert.equal(link("see https://x.test/"), null);
  assert.equal(link("https://\u0430pple.test/")?.text, "https://xn--pple-43d.test/");
});

test("forms by schema, and what was changed", () => {
  assert.equal(kindOf({ type: "string" }), "text");
  assert.equal(kindOf({}, "a\nb"), "long");
  assert.equal(kindOf({ enum: ["a"] }), "enum");
  assert.equal(kindOf({ type: "array", items: { type: "number" } }), "list");
  assert.equal(kindOf({ type: "object", properties: {} }), "json");
  assert.deepEqual(fromField("number", "4", {}), { value: 4 });
  assert.deepEqual(fromField("number", "", {}), { value: undefined });
  assert.deepEqual(fromField("json", "{", {}), { wrong: "this is not JSON" });
  assert.deepEqual(fromField("list", "1\n2", { items: { type: "number" } }), { value: [1, 2] });
  assert.equal(toField("list", ["a", "b"]), "a\nb");
  assert.deepEqual(changes({ a: 1, b: [1] }, { a: 1, b: [2] }), [{ name: "b", before: [1], after: [2] }]);
});

test("a status is a mark and a word; phase and status are two things", () => {
  const pause = { reason: { type: "approvalRequired" } };
  assert.deepEqual(ofTask({ status: "paused", pause }), { mark: "paused", word: "needs you" });
  assert.deepEqual(ofTask({ status: "paused", pause: { reason: { type: "userRequested" } } }), { mark: "paused", word: "paused" });
  assert.deepEqual(ofTask({ status: "completed", outcome: "partial" }), { mark: "issues", word: "completed with issues" });
  assert.deepEqual(ofStep({ status: "running", phase: "retry_wait" }), { mark: "retrying", word: "retrying" });
  assert.deepEqual(ofStep({ status: "running", phase: "waiting_slot" }), { mark: "waiting", word: "waiting" });
});

test("a list under a hand keeps its rows; what comes before them waits, what follows is added", () => {
  const held = (shown: string[], latest: string[]): unknown => hold({ one: shown }, { one: latest });
  assert.deepEqual(held(["b", "c"], ["a", "b", "c"]), { ids: { one: ["b", "c"] }, fresh: 1 });
  assert.deepEqual(held(["b", "c"], ["c", "d"]), { ids: { one: ["b", "c", "d"] }, fresh: 0 });
  assert.deepEqual(held(["b"], ["a", "x"]), { ids: { one: ["b"] }, fresh: 2 });
  assert.deepEqual(held(["a", "b"], []), { ids: { one: ["a", "b"] }, fresh: 0 });
  assert.deepEqual(hold({ going: ["a"], over: ["z"] }, { going: [], over: ["a", "z"] }), { ids: { going: ["a"], over: ["z"] }, fresh: 0 });
});
