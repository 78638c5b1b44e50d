// The rules of coming back, without waiting for any of it. Run by tests/e2e/test_client_typescript.py with Node itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AGAIN_MS, Backoff, Ladder, LinePlace, STABLE_MS, TaskPlace } from "../src/client/rules.ts";
import type { Frame } from "../src/client/rules.ts";
import { Cut, Over, Refused, closed } from "../src/client/ways.ts";

const event = (seq: number, task = "t_1", cursor?: string): Frame => ({
  type: "event",
  ...(cursor === undefined ? {} : { cursor }),
  event: { task, seq, at: "", type: "x", step: null, data: {} },
});

test("waiting doubles up to half a minute", () => {
  const backoff = new Backoff();
  const waits = Array.from({ length: 9 }, () => backoff.cut(0, 1));
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
});

test("a connection that stood begins the waiting anew; what the server asks for wins", () => {
  const backoff = new Backoff();
  for (let n = 0; n < 5; n += 1) backoff.cut(0, 1);
  backoff.opened(0);
  assert.equal(backoff.cut(STABLE_MS - 1, 1), 16000);
  backoff.opened(0);
  assert.equal(backoff.cut(STABLE_MS, 1), 500);
  assert.equal(backoff.cut(0, 1, 7000), 7000);
});

test("three failed tries lead to the next way, and a minute later up again", () => {
  const ladder = new Ladder();
  const seen = Array.from({ length: 9 }, () => {
    const way = ladder.choose(0);
    ladder.failed(way, 0);
    return way;
  });
  assert.deepEqual(seen, [...Array(3).fill("websocket"), ...Array(3).fill("sse"), ...Array(3).fill("poll")]);
  assert.equal(ladder.choose(AGAIN_MS), "websocket");
  assert.equal(ladder.choose(AGAIN_MS + 1), "poll");
  ladder.opened("websocket");
  assert.equal(ladder.choose(AGAIN_MS + 2), "websocket");
});

test("events of a task are taken once and in order", () => {
  const place = new TaskPlace(3, true);
  assert.deepEqual([2, 3, 4, 4, 5, 7].map((seq) => place.judge(event(seq))), ["old", "old", "news", "old", "news", "hole"]);
  assert.equal(place.after, 5);
  assert.equal(place.judge({ type: "snapshot", seq: 2, reset: true }), "news");
  assert.equal(place.judge(event(3)), "news");
});

test("events of all tasks may come again and are dropped", () => {
  const place = new LinePlace(null, true);
  assert.equal(place.judge({ type: "hello", cursor: "a" }), "news");
  assert.equal(place.after, "a");
  assert.deepEqual([event(1, "t_1", "b"), event(1, "t_2", "c"), event(1, "t_1", "b")].map((one) => place.judge(one)), ["news", "news", "old"]);
});

test("a hole in the events of a known task is seen, and the place before it is kept", () => {
  const place = new LinePlace(null, true);
  assert.deepEqual([event(7, "t_1", "a"), event(8, "t_1", "b"), event(10, "t_1", "c")].map((one) => place.judge(one)), ["news", "news", "hole"]);
  assert.equal(place.after, "b");
  assert.deepEqual([event(9, "t_1", "x"), event(10, "t_1", "c")].map((one) => place.judge(one)), ["news", "news"]);
  const chosen = new LinePlace(null, false);
  assert.deepEqual([event(7), event(10)].map((one) => chosen.judge(one)), ["news", "news"]);
});

test("close codes say whether to come back", () => {
  for (const code of [1001, 1006, 1011, 1013]) assert.ok(closed(code, "") instanceof Cut);
  for (const code of [1008, 1009, 4400, 4401, 4404]) assert.ok(closed(code, "") instanceof Refused);
  assert.ok(closed(1000, "until=end") instanceof Over);
  assert.ok(closed(1000, "somebody else's") instanceof Cut);
});
