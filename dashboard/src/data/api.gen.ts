// Written by scripts/write_docs.py from the API's own description: do not edit. Servers may add fields.

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  error: Error;
}

export interface Error {
  id: string;
  code: string;
  category: "transient" | "configuration" | "permission" | "resource" | "logic" | "internal";
  message: string;
  what_to_do: string;
  step: string | null;
  attempt: number | null;
  retry: object | null;
  impact: object | null;
  suggestions: (object)[];
  details: object | null;
  cause: object | null;
}

export interface Explanation {
  doing: string;
  since: string;
  waiting_on: object | null;
  next: string | null;
  text: string;
}

export interface Task {
  id: string;
  key: string | null;
  title: string;
  owner: string;
  status: "queued" | "running" | "pausing" | "paused" | "stalled" | "cancelling" | "completed" | "failed" | "cancelled";
  outcome: string | null;
  plan: {
    name: string;
    digest: string;
    revision: number | null;
  };
  generation: number;
  epoch: number;
  recoveries: number;
  seq: number;
  priority: number;
  progress: object;
  explain: Explanation;
  pause: Pause | null;
  worker: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  updated_at: string;
  labels: object;
  inputs: unknown;
  outputs: unknown;
  issues: (object)[];
  error: Error | null;
  estimate: object | null;
  pauses: (string)[];
  actions: (string)[];
  limits: object;
  queue: object | null;
  parent: object | null;
  created_by: {
    kind: "human" | "llm" | "service" | "system";
    id: string;
    via: string;
  };
  steps: (Step)[];
}

export interface TaskRow {
  id: string;
  key: string | null;
  title: string;
  owner: string;
  status: "queued" | "running" | "pausing" | "paused" | "stalled" | "cancelling" | "completed" | "failed" | "cancelled";
  outcome: string | null;
  plan: {
    name: string;
    digest: string;
    revision: number | null;
  };
  generation: number;
  epoch: number;
  recoveries: number;
  seq: number;
  priority: number;
  progress: object;
  explain: Explanation;
  pause: Pause | null;
  worker: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  updated_at: string;
  error_code: string | null;
}

export interface Step {
  id: string;
  title: string | null;
  tool: string | null;
  status: "pending" | "running" | "paused" | "completed" | "failed" | "skipped";
  phase: string | null;
  on_error: string;
  needs: (string)[];
  skip: object | null;
  fraction: number | null;
  retry: object | null;
  error: object | null;
  attempts: (Attempt)[];
  started_at: string | null;
  ended_at: string | null;
  duration_s: number | null;
}

export interface Attempt {
  step: string;
  number: number;
  status: "started" | "succeeded" | "failed" | "timed_out" | "killed" | "abandoned";
  generation: number;
  epoch: number;
  worker: string | null;
  tool: string;
  tool_version: string;
  idempotency_key: string;
  input: object;
  error: object | null;
  started_at: string;
  ended_at: string | null;
}

export interface Pause {
  id: string;
  task: string;
  step: string | null;
  status: "open" | "answered" | "expired" | "withdrawn";
  title: string;
  why: string;
  reason: object;
  call: object | null;
  may_answer: (string)[];
  answers: (object)[];
  opened_at: string;
  expires_at: string | null;
  answered: object | null;
  grant: string | null;
}

export interface Event {
  task: string;
  seq: number;
  at: string;
  type: string;
  step: string | null;
  generation: number;
  actor: {
    kind: "human" | "llm" | "service" | "system";
    id: string;
    via: string;
  };
  data: object;
}

export interface Artifact {
  digest: string;
  name: string;
  step: string | null;
  media_type: string;
  bytes: number;
  untrusted: boolean;
}

export interface Line {
  n: number;
  at: string | null;
  step: string | null;
  level: string | null;
  message: string | null;
}

export interface Tool {
  name: string;
  version: string;
  description: string;
  input_schema: object;
  effect: "pure" | "idempotent" | "verifiable" | "once";
  health: object;
}

export interface Breaker {
  id: string;
  target: string;
  state: "closed" | "open" | "half_open";
  failures: number;
  opened_at: string | null;
  retry_at: string | null;
  last_error: string | null;
  held_steps: (object)[];
}

export interface Worker {
  id: string;
  name: string;
  host: string;
  incarnation: string;
  heartbeat_at: string;
  tasks: number;
  tools: (string)[];
  version: string;
  status: "live" | "draining" | "dead";
}

export interface Plan {
  name: string;
  valid: boolean;
}

export interface Token {
  id: string;
  kind: string;
  name: string;
  owner: string;
  actor: {
    kind: "human" | "llm" | "service" | "system";
    id: string;
    via: string;
  };
  scopes: (string)[];
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

export interface Health {
  status: "ok" | "degraded" | "down";
  ready: boolean;
}
