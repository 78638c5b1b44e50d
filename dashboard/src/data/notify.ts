// Told outside of the page, if somebody wants it: one sound of its own for what needs somebody and for what has ended.

import { onEvent } from "./live.ts";
import { prefs } from "./prefs.ts";

const TITLES: Readonly<Record<string, string>> = {
  "pause.opened": "Something needs you", "task.completed": "A task is done", "task.failed": "A task has failed",
};

onEvent((event) => {
  const title = TITLES[event.type];
  if (title === undefined || !prefs.value.notify || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  new Notification(title, { tag: event.task, silent: event.type !== "pause.opened" });
});
