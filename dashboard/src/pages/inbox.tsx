// Everything that waits for somebody. A list and a decision; on a phone first one, then the other.

import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import { Refused } from "../client/client.ts";
import type { Pause } from "../data/api.ts";
import { at } from "../data/base.ts";
import { now } from "../data/clock.ts";
import { answers, inbox, showAnswers, waiting } from "../data/inbox.ts";
import { onEvent, onReturn } from "../data/live.ts";
import { resource } from "../data/resource.ts";
import { get } from "../data/session.ts";
import { shortId } from "../logic/text.ts";
import { Decision, kindOfPause } from "../ui/decision.tsx";
import { onKey } from "../ui/keys.ts";
import { Glyph, Icon } from "../ui/marks.tsx";
import { Ago, ErrorCard, Panel, Said, To } from "../ui/parts.tsx";

export function InboxPage() {
  const { params } = useRoute();
  const chosen = params.pause ?? null;
  const pauses = waiting.value;
  const { route } = useLocation();
  useEffect(() => {
    void inbox.refresh();
    showAnswers();
  }, []);
  const today = (answers.value.value ?? []).filter((pause) => new Date(pause.answered?.at ?? 0).toDateString() === new Date(now.value).toDateString());
  useLayoutEffect(() => {
    const step = (by: number) => () => {
      const ids = (waiting.peek() ?? []).map((pause) => pause.id);
      const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(chosen ?? "") + by))];
      if (next) route(at(`/inbox/${next}`));
    };
    return onKey({ j: step(1), k: step(-1), ArrowDown: step(1), ArrowUp: step(-1), Escape: () => route(at("/inbox")) });
  }, [chosen]);
  return (
    <div class={`inbox${chosen ? " deciding" : ""}`}>
      <section class="inbox-list" aria-label="Inbox">
        <header><h1>Inbox</h1></header>
        {inbox.error.value && <ErrorCard error={inbox.error.value} />}
        {pauses === null ? <p class="muted pad">Reading…</p> : !pauses.length ? <Nothing /> : (
          <>
            <h2 class="group">Needs you <span>{pauses.length}</span></h2>
            <ul>{pauses.map((pause) => <Item key={pause.id} pause={pause} here={pause.id === chosen} />)}</ul>
          </>
        )}
        {today.length > 0 && pauses?.length !== 0 && <><h2 class="group">Answered today <span>{today.length}</span></h2><ul>{today.map((pause) => <Item key={pause.id} pause={pause} here={pause.id === chosen} />)}</ul></>}
      </section>
      <section class="inbox-item">
        {chosen ? <Panel name="Decision" key={chosen}><ItemPage id={chosen} /></Panel> : <div class="empty"><p>Choose something on the left.</p></div>}
      </section>
    </div>
  );
}

const Item = ({ pause, here }: { pause: Pause; here: boolean }) => (
  <li>
    <To path={`/inbox/${pause.id}`} class="inbox-row" aria-current={here ? "page" : undefined}>
      <Glyph mark={pause.answered ? "completed" : "paused"} />
      <span class="grow"><span class="row-title"><Said text={pause.title} /></span><span class="small muted">{kindOfPause(pause)} · <Ago time={pause.answered?.at ?? pause.opened_at} suffix=" ago" />{pause.answered && ` · ${pause.answered.answer} by ${pause.answered.actor.id}`}</span></span>
    </To>
  </li>
);

function Nothing() {
  const last = (answers.value.value ?? []).slice(0, 3);
  return (
    <div class="empty">
      <p>Nothing needs you.</p>
      {last.length > 0 && <ul class="rows-plain" aria-label="Answered last">{last.map((pause) => <Item key={pause.id} pause={pause} here={false} />)}</ul>}
    </div>
  );
}

/** One item stands alone: it can be sent to somebody as a link. */
function ItemPage({ id }: { id: string }) {
  const read = useMemo(() => resource(() => get<Pause>(`/v1/inbox/${encodeURIComponent(id)}`)), [id]);
  const [done, setDone] = useState<Pause | null>(null);
  useEffect(() => {
    void read.refresh();
    const ends = [onEvent((event) => event.type.startsWith("pause.") && read.stale()), onReturn(() => read.stale())];
    return () => {
      for (const end of ends) end();
      read.stop();
    };
  }, [read]);
  const error = read.error.value;
  const pause = read.value.value;
  if (error instanceof Refused && error.status === 404) return <div class="empty"><h2>There is no such question here.</h2><To path="/inbox" class="button">Inbox</To></div>;
  if (pause === null) return error ? <ErrorCard error={error} /> : <p class="muted pad" role="status">Reading…</p>;
  const more = (waiting.value ?? []).filter((one) => one.id !== id);
  return (
    <div class="item">
      <p class="item-head small"><To path="/inbox" class="button plain back"><Icon name="back" />Inbox</To><span class="grow" />task <To path={`/tasks/${pause.task}${pause.step ? `?step=${encodeURIComponent(pause.step)}` : ""}`} class="mono">{shortId(pause.task)}</To>{pause.step && <span class="muted">step {pause.step}</span>}</p>
      <Decision pause={pause} onDone={setDone} />
      {done && more[0] && <p class="note"><span class="grow">Next: {more.length} more like this.</span><To path={`/inbox/${more[0].id}`} class="button">Next</To></p>}
      {done && !more.length && <p class="note">Nothing else needs you.</p>}
    </div>
  );
}
