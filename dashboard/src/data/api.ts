// The objects of the API, as far as pages read them: what the server's own description says (api.gen.ts), and what it
// leaves open. A field that is named here otherwise than there does not compile.

import type { Estimate } from "../logic/estimate.ts";
import type * as Api from "./api.gen.ts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface Actor {
  kind: string;
  id: string;
  via: string;
}

export interface Payload {
  value?: Json;
  digest?: string;
  bytes: number;
  untrusted: boolean;
  artifact?: string;
  media_type?: string;
  preview?: string;
}

export interface Waiting {
  kind: string;
  detail: string | null;
  until: string | null;
  ref: string | null;
}

export interface Explain extends Api.Explanation {
  waiting_on: Waiting | null;
}

export interface Progress {
  fraction: number | null;
  done: number;
  total: number;
  current: string[] | null;
}

export interface Request {
  method: string;
  path: string;
  body: JsonObject;
}

export interface Suggestion {
  action: string;
  label: string;
  request: Request | null;
}

export interface ApiError extends Api.Error {
  retry: Retry | null;
  suggestions: Suggestion[];
  details: JsonObject | null;
  cause: ApiError | null;
}

export interface Retry {
  count: number;
  max: number | null;
  next_at: string | null;
}

export interface Task extends Omit<Api.TaskRow, "error_code"> {
  labels: Record<string, string> | null;
  inputs?: Json;
  outputs?: Json;
  issues: { step: string; status: string; reason: string; error: { code: string; message: string } | null }[] | null;
  error: ApiError | null;
  progress: Progress;
  estimate: Estimate | null;
  explain: Explain;
  pause: Pause | null;
  pauses: string[] | null;
  actions: string[] | null;
  limits: Record<string, { used: number; max: number }> | null;
  heartbeat_at: string | null;
  queue: { position: number; wait_s: number | null } | null;
  parent: { task: string; step: string | null; link: string } | null;
  created_by: Actor | null;
  steps?: Step[];
}

export interface Step extends Api.Step {
  tool_used: string | null;
  tool_version: string | null;
  effect: string | null;
  skip: { reason: string; upstream: string | null } | null;
  retry: Retry | null;
  waiting_on: Waiting | null;
  input: Payload | null;
  bound_from: JsonObject | null;
  output: Payload | null;
  summary: string | null;
  via: string | null;
  degraded: { level: number; changes: Json } | null;
  cached: { age_s: number } | null;
  counts: { total: number | null; completed: number; failed: number; skipped: number } | null;
  error: ApiError | null;
  estimate: Estimate | null;
  attempts: Attempt[];
  pause: string | null;
}

export interface Attempt extends Api.Attempt {
  input: Payload;
  approval: string | null;
  degraded: { level: number } | null;
  error: ApiError | null;
  effect_state: string | null;
  usage: JsonObject | null;
  containment: JsonObject | null;
  duration_s: number | null;
}

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: Json[];
  const?: Json;
  default?: Json;
  format?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

export interface Answer {
  answer: string;
  label: string;
  schema: Schema | null;
  request: Request;
}

export interface Pause extends Api.Pause {
  reason: { type: string } & JsonObject;
  call: { tool: string; tool_version: string; effect: string; input: Payload; editable: string[] } | null;
  show: Json[];
  guidance: string | null;
  answers: Answer[];
  on_timeout: string | null;
  answered: { answer: string; actor: Actor; at: string; note: string | null; diff: Json[] | null } | null;
}

export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

export interface PlanRow {
  name: string;
  title: string | null;
  description: string | null;
  inputs: { name: string; schema: Schema; required: boolean }[];
  digest: string;
  valid: boolean;
  last: { task: string; status: string; ended_at: string | null }[];
  p50: number | null;
  p90: number | null;
  success: number | null;
  plan?: JsonObject;
  plan_text?: string;
}

export interface Owner {
  owner: string;
  actor: Actor;
  scopes: string[];
  limits: JsonObject;
  used: JsonObject;
}

export interface Health extends Api.Health {
  reason?: string | null;
  version?: string;
  incarnation?: string;
  store?: { kind: string; schema_version: number; tasks: Record<string, number>; events: number | null; size_bytes: number | null; commit_p95_s: number | null } | null;
  durability?: string;
  recovery?: { recovered?: number; done?: number; total?: number };
  halt?: { mode: string; by: string; at: string; note: string | null } | null;
  queue?: { queued: number; stalled: number } | null;
  load?: { tasks: number; max: number } | null;
  pools?: Record<string, { size: number; taken: number; waiting: number }> | null;
  rates?: Record<string, { max: number; period_s: number; used: number; waiting: number }> | null;
  limits?: { live_tasks: number | null };
  streams?: { open: number; dropped: number } | null;
}

export interface Breaker extends Api.Breaker {
  tool: string;
  held_steps: { task: string; step: string }[];
}

export type Worker = Api.Worker;

export interface Tool extends Api.Tool {
  title?: string;
  input_schema: Schema;
  health: { status: string; latency_s: number | null; checked_at: string | null; detail: string };
}
