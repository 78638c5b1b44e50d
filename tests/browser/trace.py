"""What a page costs: CPU time of its main thread, by Chromium's own trace, which holds on a busy machine too."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import CDPSession, Page

FRAMES: Final = 240
SCROLL: Final = """async ([place, frames]) => {
  const seen = [];
  const moving = document.querySelector(place);
  let last = performance.now();
  for (let n = 0; n < frames; n += 1) {
    moving.scrollTop += 700;
    await new Promise(done => requestAnimationFrame(done));
    seen.push(performance.now() - last);
    last = performance.now();
  }
  return seen;
}"""


class Trace:
    """What the page's main thread did, while it was watched."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        names = [one for one in events if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"]
        mains = {(one["pid"], one["tid"]) for one in names}
        mine = sorted(
            (one for one in events if (one["pid"], one["tid"]) in mains and "ts" in one), key=lambda e: e["ts"]
        )
        self.tasks_ms = sorted(one.get("tdur", 0) / 1000 for one in mine if one["name"] == "RunTask")
        self.frames_ms = sorted(_frames(mine))

    def long(self, above_ms: float) -> int:
        """How many tasks took more CPU time than this."""
        return sum(one > above_ms for one in self.tasks_ms)


def _frames(events: list[dict[str, Any]]) -> Iterator[float]:
    """CPU time of everything between the beginning of one frame and of the next."""
    spent: float | None = None
    for one in events:
        if one["name"] == "FireAnimationFrame":
            if spent is not None:
                yield spent
            spent = 0.0
        elif one["name"] == "RunTask" and spent is not None:
            spent += one.get("tdur", 0) / 1000


@contextmanager
def traced(page: Page) -> Iterator[list[Trace]]:
    """Watch the page; the trace is there afterwards."""
    session: CDPSession = page.context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    over: list[bool] = []
    session.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    session.on("Tracing.tracingComplete", lambda _: over.append(True))
    categories = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
    session.send("Tracing.start", {"traceConfig": {"includedCategories": categories}, "transferMode": "ReportEvents"})
    found: list[Trace] = []
    yield found
    session.send("Tracing.end")
    while not over:
        page.wait_for_timeout(50)
    found.append(Trace(events))


def scroll(page: Page, place: str, frames: int = FRAMES) -> list[float]:
    """As fast as a hand can; how long each frame took by the clock, in milliseconds."""
    seen: list[float] = page.evaluate(SCROLL, [place, frames])
    return seen


def share(values: list[float], of: float) -> float:
    """So many of them are at most this."""
    return sorted(values)[min(len(values) - 1, int(len(values) * of))] if values else 0.0


def heap_mb(page: Page) -> float:
    """What is kept, after everything else has been collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6
