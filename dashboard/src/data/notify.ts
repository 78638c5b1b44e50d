// Told outside of the page: by its icon, and by a notification if somebody wants it, louder for what needs somebody.

import { signal } from "@preact/signals";
import { onEvent } from "./live.ts";
import { prefs } from "./prefs.ts";

const TITLES: Readonly<Record<string, string>> = {
  "pause.opened": "Something needs you", "task.completed": "A task is done", "task.failed": "A task has failed",
};

/** Something has failed since somebody last looked. */
export const failedUnseen = signal(false);
document.addEventListener("visibilitychange", () => (failedUnseen.value = false));

onEvent((event) => {
  if (event.type === "task.failed" && document.hidden) failedUnseen.value = true;
  const title = TITLES[event.type];
  if (title === undefined || !prefs.value.notify || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  new Notification(title, { tag: event.task, silent: event.type !== "pause.opened" });
});
