// The connection in a word, and what to do when there is none.

import { asOf, connected, firstVersion, nextTryS, recovering, servedVersion, tryNow, word } from "../data/connection.ts";
import { clock } from "../logic/times.ts";

export const ConnectionWord = () => (
  <span class={`connection${connected.value ? "" : " off"}`} role="status">
    <i aria-hidden="true" />{word.value === "offline" ? `offline, as of ${clock(asOf.value)}` : word.value}
  </span>
);

export function Banners() {
  const now = word.value;
  const updated = firstVersion.value !== null && servedVersion.value !== firstVersion.value;
  return (
    <>
      {(now === "reconnecting" || now === "offline") && (
        <div class="banner warn" role="alert">
          <span>Lost the connection. {nextTryS.value > 0 ? `Retrying in ${nextTryS.value} s.` : "Retrying now."} What is shown is as of {clock(asOf.value)}.</span>
          <button type="button" class="tiny" onClick={tryNow}>Try now</button>
        </div>
      )}
      {now === "recovering" && (
        <div class="banner warn" role="alert">The engine is recovering{progress()}. What is shown is as of {clock(asOf.value)}.</div>
      )}
      {updated && <div class="banner" role="status">Updated to {servedVersion.value}. <button type="button" class="tiny" onClick={() => location.reload()}>Reload</button></div>}
    </>
  );
}

function progress(): string {
  const seen = recovering.value?.recovery;
  return seen?.total ? `: ${(seen.done ?? 0).toLocaleString("en")} of ${seen.total.toLocaleString("en")} tasks` : "";
}
