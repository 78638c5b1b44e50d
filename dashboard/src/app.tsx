// The frame around every page: places, what needs somebody, and how it stands with the connection.

import { signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { LocationProvider, Route, Router, lazy, useLocation } from "preact-iso";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { at, prefix } from "./data/base.ts";
import { connected } from "./data/connection.ts";
import { needsYou } from "./data/inbox.ts";
import { failedUnseen } from "./data/notify.ts";
import { prefer } from "./data/prefs.ts";
import { may, owner, signedOut, token } from "./data/session.ts";
import { InboxPage } from "./pages/inbox.tsx";
import { TaskPage } from "./pages/task.tsx";
import { TasksPage } from "./pages/tasks.tsx";
import { Banners, ConnectionWord } from "./ui/connection.tsx";
import { onKey } from "./ui/keys.ts";
import { Icon, Logo } from "./ui/marks.tsx";
import { LiveRegion, To } from "./ui/parts.tsx";
import { Palette } from "./ui/palette.tsx";
import { Settings, Shortcuts } from "./ui/settings.tsx";
import { SignIn } from "./ui/signin.tsx";

const PlansPage = lazy(() => import("./pages/plans.tsx").then((page) => page.PlansPage));
const HealthPage = lazy(() => import("./pages/health.tsx").then((page) => page.HealthPage));
const StatsPage = lazy(() => import("./pages/stats.tsx").then((page) => page.StatsPage));

/** Which of the dialogs that are at hand everywhere is open. */
const dialog = signal<"settings" | "keys" | "palette" | null>(null);
const close = (): void => void (dialog.value = null);

const PLACES = [
  ["/", "Tasks", "tasks"],
  ["/inbox", "Inbox", "inbox"],
  ["/plans", "Plans", "plans"],
  ["/health", "Health", "health"],
  ["/stats", "Stats", "stats"],
] as const;

const isHere = (path: string, place: string): boolean =>
  place === "/" ? path === at("/") || path === prefix || path.startsWith(at("/tasks/")) : path === at(place) || path.startsWith(at(`${place}/`));

function Rail() {
  const { path } = useLocation();
  return (
    <nav class="rail" aria-label="Places">
      <To path="/" class="brand"><Logo /><span>everstep</span></To>
      {PLACES.map(([place, name, icon]) => (
        <To key={place} path={place} class="place" aria-current={isHere(path, place) ? "page" : undefined} title={name}>
          <Icon name={icon} /><span class="label">{name}</span>
          {place === "/inbox" && needsYou.value > 0 && <span class="badge">{needsYou.value}<span class="hidden"> need you</span></span>}
        </To>
      ))}
      <div class="end"><button type="button" class="place" title="Settings" onClick={() => (dialog.value = "settings")}><Icon name="settings" /><span class="label">Settings</span></button></div>
    </nav>
  );
}

const Nothing = () => <div class="page"><div class="empty card"><h1>There is nothing here.</h1><To path="/" class="button">Tasks</To></div></div>;

function Frame({ children }: { children: ComponentChildren }) {
  useSignalEffect(() => {
    const n = needsYou.value;
    document.title = n > 0 ? `(${n}) everstep` : "everstep";
    const icon = !connected.value ? "offline" : n > 0 ? "needs-you" : failedUnseen.value ? "failed" : "idle";
    const link = document.querySelector<HTMLLinkElement>("#favicon");
    if (link && !link.href.endsWith(`/${icon}.svg`)) link.href = at(`/${icon}.svg`);
  });
  return (
    <div class={`shell${connected.value ? "" : " offline-marks"}`}>
      <a class="skip" href="#content">Skip to content</a>
      <Rail />
      <div class="main">
        <header class="top">
          <button type="button" class="find" onClick={() => (dialog.value = "palette")}><Icon name="search" /><span class="label">Find a task, plan or action</span><kbd>Ctrl K</kbd></button>
          <ConnectionWord />
          <button type="button" class="plain phone-only" aria-label="Settings" onClick={() => (dialog.value = "settings")}><Icon name="settings" /></button>
        </header>
        <Banners />
        {owner.value && !may("write") && <div class="banner">This token may look, but not start or steer tasks (scope <code>write</code>).</div>}
        <main class="content" id="content" tabIndex={-1}>{children}</main>
      </div>
      <LiveRegion />
    </div>
  );
}

const COMMANDS = [
  { id: "settings", label: "Settings", hint: "dialog", act: () => void (dialog.value = "settings") },
  { id: "keys", label: "Keys", hint: "dialog", act: () => void (dialog.value = "keys") },
  ...(["light", "dark", "system"] as const).map((theme) => ({ id: theme, label: `Theme: ${theme}`, hint: "setting", act: () => prefer({ theme }) })),
];

function Dialogs() {
  switch (dialog.value) {
    case "settings":
      return <Settings onClose={close} />;
    case "keys":
      return <Shortcuts onClose={close} />;
    case "palette":
      return <Palette onClose={close} commands={COMMANDS} />;
    default:
      return null;
  }
}

/** Rows of whatever list is shown. */
function walk(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>(".task-row .title, .plan-card .title")];
  const here = rows.indexOf(document.activeElement as HTMLElement);
  rows[Math.max(0, Math.min(rows.length - 1, here + by))]?.focus();
  return rows.length > 0;
}

/** A new place begins at its top; keys work everywhere. */
function Top() {
  const { path, route } = useLocation();
  useLayoutEffect(() => onKey({
    "?": () => (dialog.value = "keys"),
    "mod+k": () => (dialog.value = dialog.value === "palette" ? null : "palette"),
    "/": () => document.querySelector<HTMLElement>("[data-key='/'], .content input[type=search]")?.focus(),
    j: () => walk(1),
    k: () => walk(-1),
    ArrowDown: () => walk(1),
    ArrowUp: () => walk(-1),
    ...Object.fromEntries(PLACES.map(([place, name]) => [`g ${name[0]?.toLowerCase()}`, () => route(at(place))])),
  }), []);
  useEffect(() => document.querySelector("#content")?.scrollTo(0, 0), [path]);
  return null;
}

export function App() {
  return (
    <LocationProvider scope={at("/")}>
      <Frame>
        <Top />
        {token.value !== null && (
          <Router>
            <Route path={at("/")} component={TasksPage} />
            <Route path={at("/tasks/:id")} component={TaskPage} />
            <Route path={at("/inbox/:pause?")} component={InboxPage} />
            <Route path={at("/plans/:name?")} component={PlansPage} />
            <Route path={at("/health")} component={HealthPage} />
            <Route path={at("/stats")} component={StatsPage} />
            <Route default component={Nothing} />
          </Router>
        )}
      </Frame>
      <Dialogs />
      {signedOut.value && <SignIn />}
    </LocationProvider>
  );
}
