// Everything that waits for somebody, for the count in the rail and the inbox page alike.

import { computed, effect } from "@preact/signals";
import { inInbox } from "../logic/status.ts";
import type { Page, Pause } from "./api.ts";
import { onEvent, onReturn } from "./live.ts";
import { resource } from "./resource.ts";
import { get, signedOut } from "./session.ts";

async function all(): Promise<Pause[]> {
  const found: Pause[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Pause> = await get(`/v1/inbox?limit=500${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null && found.length < 5000);
  return found.filter((pause) => inInbox(pause.reason.type));
}

export const inbox = resource(all, 500);
/** What was answered last, by whomever, newest first. */
export const answers = resource(async () => {
  const found = (await get<Page<Pause>>("/v1/inbox?answered=1&limit=20")).items.filter((pause) => inInbox(pause.reason.type));
  return found.sort((a, b) => (b.answered?.at ?? "").localeCompare(a.answered?.at ?? ""));
}, 1000);
/** What nobody has answered: both are read one after the other, and nothing stands in both. */
export const waiting = computed(() => {
  const answered = new Set((answers.value.value ?? []).map((pause) => pause.id));
  return inbox.value.value?.filter((pause) => !answered.has(pause.id)) ?? null;
});
export const needsYou = computed(() => waiting.value?.length ?? 0);

let shown = false;
/** Read for whoever looks at them, and from then on again when there may be more. */
export function showAnswers(): void {
  shown = true;
  void answers.refresh();
}

onReturn(() => {
  inbox.stale();
  if (shown) answers.stale();
});
onEvent((event) => {
  if (event.type === "pause.answered" && shown) answers.stale();
  if (event.type.startsWith("pause.") || event.type.startsWith("task.")) inbox.stale();
});
effect(() => {
  if (!signedOut.value) inbox.stale();
});
