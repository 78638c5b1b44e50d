// How a status is shown: a mark, a word and a colour, never a colour alone.

export type Mark = "running" | "retrying" | "stalled" | "paused" | "completed" | "issues" | "failed" | "queued" | "waiting" | "skipped" | "cancelled";

export interface Shown {
  mark: Mark;
  word: string;
}

const NOT_IN_INBOX: ReadonlySet<string> = new Set(["userRequested", "resourcePressure"]);

/** Whether a pause asks somebody something; others are lifted where the task is steered. */
export const inInbox = (type: string): boolean => !NOT_IN_INBOX.has(type);

export const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

interface TaskLike {
  status: string;
  outcome?: string | null;
  pause?: { reason: { type: string } } | null;
  explain?: { waiting_on: { kind: string } | null };
}

export function ofTask(task: TaskLike): Shown {
  const type = task.pause?.reason.type;
  switch (task.status) {
    case "paused":
      return type !== undefined && !NOT_IN_INBOX.has(type) ? { mark: "paused", word: "needs you" } : { mark: "paused", word: "paused" };
    case "running": {
      if (task.explain?.waiting_on?.kind === "retry") return { mark: "retrying", word: "retrying" };
      if (type !== undefined && !NOT_IN_INBOX.has(type)) return { mark: "paused", word: "needs you" };
      return { mark: "running", word: "running" };
    }
    case "completed":
      return task.outcome === "partial" ? { mark: "issues", word: "completed with issues" } : { mark: "completed", word: "completed" };
    case "pausing":
      return { mark: "paused", word: "pausing" };
    case "cancelling":
    case "cancelled":
      return { mark: "cancelled", word: task.status };
    case "stalled":
    case "failed":
    case "queued":
      return { mark: task.status, word: task.status };
    default:
      return { mark: "queued", word: task.status };
  }
}

/** A step: its status and its phase are two words. */
export function ofStep(step: { status: string; phase: string | null }): Shown {
  if (step.status === "running") {
    if (step.phase === "retry_wait") return { mark: "retrying", word: "retrying" };
    if (step.phase === "waiting_slot") return { mark: "waiting", word: "waiting" };
    return { mark: "running", word: "running" };
  }
  if (step.status === "paused") return { mark: "paused", word: step.phase === "awaiting_approval" ? "needs you" : "paused" };
  if (step.status === "pending") return { mark: "queued", word: "pending" };
  return { mark: step.status as Mark, word: step.status };
}
