// The frame around every page: places, what needs somebody, and how it stands with the connection.

import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { LocationProvider, Route, Router, useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { at, prefix } from "./data/base.ts";
import { connected } from "./data/connection.ts";
import { needsYou } from "./data/inbox.ts";
import { may, owner, signedOut, token } from "./data/session.ts";
import { InboxPage } from "./pages/inbox.tsx";
import { TaskPage } from "./pages/task.tsx";
import { TasksPage } from "./pages/tasks.tsx";
import { Banners, ConnectionWord } from "./ui/connection.tsx";
import { Icon, Logo } from "./ui/marks.tsx";
import { LiveRegion, To } from "./ui/parts.tsx";
import { SignIn } from "./ui/signin.tsx";

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
    </nav>
  );
}

const Nothing = () => <div class="page"><div class="empty card"><h1>There is nothing here.</h1><To path="/" class="button">Tasks</To></div></div>;

function Frame({ children }: { children: ComponentChildren }) {
  useSignalEffect(() => {
    const n = needsYou.value;
    document.title = n > 0 ? `(${n}) everstep` : "everstep";
    const icon = !connected.value ? "offline" : n > 0 ? "needs-you" : "idle";
    const link = document.querySelector<HTMLLinkElement>("#favicon");
    if (link && !link.href.endsWith(`/${icon}.svg`)) link.href = at(`/${icon}.svg`);
  });
  return (
    <div class={`shell${connected.value ? "" : " offline-marks"}`}>
      <a class="skip" href="#content">Skip to content</a>
      <Rail />
      <div class="main">
        <header class="top"><ConnectionWord /></header>
        <Banners />
        {owner.value && !may("write") && <div class="banner">This token may look, but not start or steer tasks (scope <code>write</code>).</div>}
        <main class="content" id="content" tabIndex={-1}>{children}</main>
      </div>
      <LiveRegion />
    </div>
  );
}

/** A new place begins at its top. */
function Top() {
  const { path } = useLocation();
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
            <Route default component={Nothing} />
          </Router>
        )}
      </Frame>
      {signedOut.value && <SignIn />}
    </LocationProvider>
  );
}
