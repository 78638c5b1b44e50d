// The objects of the API, as far as pages read them (docs/reference/http.md). Servers may add fields.

import type { Estimate } from "../logic/estimate.ts";

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

export interface Explain {
  doing: string;
  since: string;
  waiting_on: Waiting | null;
  next: string | null;
  text: string;
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

export interface ApiError {
  id?: string;
  code: string;
  category: string;
  message: string;
  what_to_do: string;
  step: string | null;
  attempt: number | null;
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

export interface Task {
  id: string;
  key: string | null;
  title: string;
  owner: string;
  status: string;
  outcome: string | null;
  plan: { name: string; digest: string; revision: number | null };
  generation: number;
  epoch: number;
  recoveries: number;
  seq: number;
  priority: number;
  labels: Record<string, string> | null;
  inputs?: Json;
  outputs?: Json;
  issues: { step: string; status: string; reason: string; error: { code: string; message: string } | null }[] | null;
  error: ApiError | null;
  error_code?: string | null;
  progress: Progress;
  estimate: Estimate | null;
  explain: Explain;
  pause: Pause | null;
  pauses: string[] | null;
  actions: string[] | null;
  limits: Record<string, { used: number; max: number }> | null;
  worker: string | null;
  heartbeat_at: string | null;
  queue: { position: number; wait_s: number | null } | null;
  parent: { task: string; step: string | null; link: string } | null;
  created_by: Actor | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  updated_at: string;
  steps?: Step[];
}

export interface Step {
  id: string;
  title: string | null;
  tool: string | null;
  tool_used: string | null;
  tool_version: string | null;
  effect: string | null;
  status: string;
  phase: string | null;
  on_error: string;
  needs: string[] | null;
  skip: { reason: string; upstream: string | null } | null;
  fraction: number | null;
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
  started_at: string | null;
  ended_at: string | null;
  duration_s: number | null;
}

export interface Attempt {
  step: string;
  number: number;
  status: string;
  generation: number;
  epoch: number;
  worker: string | null;
  tool: string;
  tool_version: string;
  idempotency_key: string;
  input: Payload | null;
  approval: string | null;
  degraded: { level: number } | null;
  error: ApiError | null;
  effect_state: string | null;
  usage: JsonObject | null;
  containment: JsonObject | null;
  started_at: string;
  ended_at: string | null;
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

export interface Pause {
  id: string;
  task: string;
  step: string | null;
  status: string;
  title: string;
  why: string;
  reason: { type: string } & JsonObject;
  call: { tool: string; tool_version: string; effect: string; input: Payload; editable: string[] } | null;
  show: Json[];
  guidance: string | null;
  may_answer: string[];
  answers: Answer[];
  opened_at: string;
  expires_at: string | null;
  on_timeout: string | null;
  answered: { answer: string; actor: Actor; at: string; note: string | null; diff: Json[] | null } | null;
  grant: string | null;
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
}

export interface Owner {
  owner: string;
  actor: Actor;
  scopes: string[];
  limits: JsonObject;
  used: JsonObject;
}

export interface Health {
  status: "ok" | "degraded" | "down";
  ready: boolean;
  reason?: string | null;
  version?: string;
  incarnation?: string;
  store?: { kind: string; schema_version: number; tasks: Record<string, number>; events: number | null; size_bytes: number | null } | null;
  durability?: string;
  recovery?: { recovered?: number; done?: number; total?: number };
  halt?: { mode: string; by: string; at: string; note: string | null } | null;
  queue?: { queued: number; stalled: number } | null;
  load?: { tasks: number; max: number } | null;
  pools?: Record<string, { size: number; taken: number; waiting: number }> | null;
  rates?: JsonObject;
  streams?: { open: number; dropped: number } | null;
}

export interface Breaker {
  id: string;
  tool: string;
  target: string;
  state: "closed" | "open" | "half_open";
  failures: number;
  opened_at: string | null;
  retry_at: string | null;
  last_error: string | null;
  held_steps: { task: string; step: string }[];
}

export interface Worker {
  id: string;
  name: string;
  host: string;
  heartbeat_at: string;
  tasks: number;
  tools: string[];
  version: string;
  status: "live" | "draining" | "dead";
}

export interface Tool {
  name: string;
  version: string;
  title?: string;
  description: string;
  effect: string;
  input_schema: Schema;
  health: { status: string; latency_s: number | null; checked_at: string | null; detail: string };
}
