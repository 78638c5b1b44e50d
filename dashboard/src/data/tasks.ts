// The tasks of a filter: what needs somebody, what goes on, what has ended. When something happens the beginning is read
// again; what has ended and was read further down stays as it is.

import { Refused } from "../client/client.ts";
import type { Filter } from "../logic/filter.ts";
import { ofTask } from "../logic/status.ts";
import type { Page, Task } from "./api.ts";
import { resource } from "./resource.ts";
import type { Resource } from "./resource.ts";
import { get } from "./session.ts";

const ACTIVE = "queued,running,pausing,paused,stalled,cancelling";
const ENDED = "completed,failed,cancelled";
const NEEDS_MAX = 20;
const ACTIVE_MIN = 200;
const PAGE = 50;
const PAGE_MAX = 500;
const APART_MS = 700;

export interface Listed {
  needs: Task[];
  active: Task[];
  ended: Task[];
  more: boolean;
}

const RETRYING = "retrying"; // no status of a task: it runs, and waits for its next try
export const retries = (task: Task): boolean => ofTask(task).mark === RETRYING;

/** Statuses that are asked for and possible in a group; null: none. */
function among(filter: Filter, group: string): string | null {
  if (filter.status === undefined) return group;
  const wanted = filter.status.split(",").map((one) => (one === RETRYING ? "running" : one));
  const known = new Set(`${ACTIVE},${ENDED}`.split(","));
  if (wanted.some((one) => !known.has(one))) return filter.status; // let the server say what is wrong
  return group.split(",").filter((one) => wanted.includes(one)).join(",") || null;
}

const NONE: Page<Task> = { items: [], next_cursor: null };

export class TaskList {
  readonly read: Resource<Listed>;
  private readonly filter: Filter;
  private ended: Task[] = [];
  private cursor: string | null = null;
  private activeMax = ACTIVE_MIN;
  private activeMore = false;
  private loading = false;

  constructor(filter: Filter) {
    this.filter = filter;
    this.read = resource(() => this.all(), APART_MS);
  }

  /** The next page, of what goes on before what has ended. */
  async more(): Promise<void> {
    if (this.activeMore) {
      this.activeMax += PAGE_MAX;
      await this.read.refresh();
      return;
    }
    const from = this.cursor;
    const before = this.read.value.peek();
    if (this.loading || from === null || before === null) return;
    this.loading = true;
    try {
      const page = await this.page(ENDED, PAGE, { sort: "-updated_at", cursor: from });
      const now = this.read.value.peek();
      if (this.cursor !== from || now === null) return; // read anew meanwhile
      const there = new Set(this.ended.map((task) => task.id));
      this.ended = [...this.ended, ...page.items.filter((task) => !there.has(task.id))];
      this.cursor = page.next_cursor;
      this.read.value.value = this.listed(now.needs, now.active);
    } catch (problem) {
      const waitS = problem instanceof Refused ? problem.retryAfterS : null;
      if (waitS === null) this.read.error.value = problem as Error;
      else setTimeout(() => void this.more(), waitS * 1000); // whoever scrolls faster than the server likes waits a moment
    } finally {
      this.loading = false;
    }
  }

  private async all(): Promise<Listed> {
    const [needs, active, ended] = await Promise.all([
      this.page(ACTIVE, NEEDS_MAX, { needs_you: "1" }),
      this.upTo(this.activeMax),
      this.filter.needs_you ? NONE : this.page(ENDED, PAGE, { sort: "-updated_at" }),
    ]);
    this.activeMore = active.next_cursor !== null;
    this.join(ended);
    return this.listed(needs.items, active.items);
  }

  private listed(needs: Task[], active: Task[]): Listed {
    const mine = new Set(needs.map((task) => task.id));
    const only = this.filter.status === RETRYING ? retries : () => true;
    const going = active.filter((task) => !mine.has(task.id) && only(task));
    const alive = new Set([...needs, ...active].map((task) => task.id));
    return { needs, active: going, ended: this.ended.filter((task) => !alive.has(task.id)), more: this.activeMore || this.cursor !== null };
  }

  /** What ended last, in front of what is known; whoever is missing there is not among them any more. */
  private join(page: Page<Task>): void {
    const newest = new Set(page.items.map((task) => task.id));
    const last = page.items.at(-1)?.updated_at ?? "";
    const rest = this.ended.filter((task) => !newest.has(task.id) && task.updated_at <= last);
    const meets = this.ended.some((task) => newest.has(task.id));
    if (page.next_cursor === null || !meets || rest.length === 0) [this.ended, this.cursor] = [page.items, page.next_cursor];
    else this.ended = [...page.items, ...rest];
  }

  private async upTo(many: number): Promise<Page<Task>> {
    const items: Task[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<Task> = await this.page(ACTIVE, Math.min(PAGE_MAX, many - items.length), cursor === null ? {} : { cursor });
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== null && items.length < many);
    return { items, next_cursor: cursor };
  }

  private async page(group: string, limit: number, more: Record<string, string>): Promise<Page<Task>> {
    const status = among(this.filter, group);
    if (status === null) return NONE;
    const asked = new URLSearchParams({ ...this.filter, status, limit: String(limit), ...more } as Record<string, string>);
    return get<Page<Task>>(`/v1/tasks?${asked.toString()}`);
  }
}
