"""How the dashboard copes with a large task, a large output and many lines: `python -m bench.dashboard`.

Work of the page is told in CPU time of its main thread, task by task and frame by frame (Chromium's own trace), so that
the figures hold on a machine that others use too. Wall clock times stand beside them.
"""

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect, sync_playwright

from scripts.build_dashboard import STATIC, build
from tests.browser.stage import Stage, chromium
from tests.browser.trace import heap_mb, scroll, share, traced

STEPS: Final = 498
ITEMS: Final = 10_000
LOADS: Final = 3
BUSY_S: Final = 60
LINES: Final = 100_000
TASKS: Final = 10_000
STARTERS: Final = 4
QUANTILES: Final = (("p50", 0.5), ("p95", 0.95), ("max", 1.0))


def tell(what: str, *said: object) -> None:
    """One line per figure."""
    print(f"{what:<34}", *said, flush=True)


def scrolled(page: Page, what: str, place: str) -> None:
    """Scroll as fast as a hand can, and say what it cost."""
    with traced(page) as traces:
        wall = scroll(page, place)
    (trace,) = traces
    tell(f"{what}, frames by the clock", *(f"{name} {share(wall, of):.1f}" for name, of in QUANTILES), "ms")
    cpu = trace.frames_ms
    tell(f"{what}, CPU per frame", *(f"{name} {share(cpu, of):.1f}" for name, of in QUANTILES), f"ms ({len(cpu)})")
    tell(f"{what}, tasks > 50 ms of CPU", trace.long(50))


def large_task(stage: Stage, page: Page) -> None:
    """500 steps, one of them with 10,000 items."""
    steps = [
        {"id": "n", "tool": "stage.numbers", "with": {"many": ITEMS}},
        {"id": "many", "for_each": "${n}", "parallel": 50, "tool": "stage.item", "with": {"n": "${item}"}},
        *({"id": f"s{n}", "tool": "stage.echo", "with": {"value": n}} for n in range(STEPS)),
    ]
    task = stage.start({"name": "huge", "steps": steps})
    head = stage.until(task, "completed")["seq"]
    page.add_init_script(NOTICE)
    for _ in range(LOADS):
        spent = stage.cpu_s()
        page.goto(f"{stage.url}/tasks/{task}")
        page.locator("[data-step=n]").wait_for()
        took, served = page.evaluate("window.usable") / 1000, stage.cpu_s() - spent
        tell("large task, usable after", f"{took:.2f} s; {served:.2f} s of the server's CPU, its stream included")
        page.goto(f"{stage.url}/health")
        expect(page.get_by_role("region", name="Store")).to_be_visible()
    began = time.monotonic()
    with traced(page) as traces:
        page.goto(f"{stage.url}/tasks/{task}?tab=journal")
        expect(page.get_by_text(f"{head:,} events")).to_be_visible()
        tell("large task, journal whole after", f"{time.monotonic() - began:.2f} s ({head:,} events)")
        page.locator("[data-step=many] .twist").click()
        expect(page.get_by_role("treegrid")).to_have_attribute("aria-rowcount", f"{ITEMS + STEPS + 2}")
    tell("large task, longest task", f"{max(traces[0].tasks_ms):.0f} ms of CPU; > 50 ms: {traces[0].long(50)}")
    scrolled(page, "large task", ".rows-scroll")
    tell("large task, nodes", page.locator("*").count())
    tell("large task, heap", f"{heap_mb(page):.0f} MB")


def large_output(stage: Stage, page: Page) -> None:
    """16 MB of JSON."""
    task = stage.start({"name": "big", "steps": [{"id": "big", "tool": "stage.big", "with": {"megabytes": 15}}]})
    stage.until(task, "completed")
    page.goto(f"{stage.url}/tasks/{task}?step=big&tab=input")
    expect(page.get_by_text("megabytes")).to_be_visible()
    before = heap_mb(page)
    with traced(page) as traces:
        began = time.monotonic()
        page.locator("#tab-output").click()
        page.locator("pre.first").wait_for()
        took = time.monotonic() - began
    longest = max(traces[0].tasks_ms)
    tell("16 MB output", f"first 64 KiB after {took * 1000:.0f} ms; longest task {longest:.0f} ms of CPU")
    tell("16 MB output, heap", f"{heap_mb(page) - before:+.1f} MB")


PAINTS: Final = """() => {
  window.paints = 0;
  new MutationObserver(() => { window.paints += 1; }).observe(document.querySelector('[role=treegrid]'), {
    subtree: true, childList: true, attributes: true, characterData: true,
  });
}"""


def busy_task(stage: Stage, page: Page) -> None:
    """About 200 events a second, on a task that is being looked at."""
    items = BUSY_S * 150
    steps = [
        {"id": "n", "tool": "stage.numbers", "with": {"many": items}},
        {"id": "many", "for_each": "${n}", "parallel": 50, "tool": "stage.paced", "with": {"n": "${item}"}},
    ]
    task = stage.start({"name": "busy", "steps": steps})
    page.goto(f"{stage.url}/tasks/{task}")
    page.locator("[data-step=many] .twist svg").wait_for()
    before, seq, began = heap_mb(page), stage.api("GET", f"/v1/tasks/{task}")["seq"], time.monotonic()
    page.evaluate(PAINTS)
    with traced(page) as traces:
        page.wait_for_timeout(BUSY_S * 1000)
    took = time.monotonic() - began
    events = stage.api("GET", f"/v1/tasks/{task}")["seq"] - seq
    tell("busy task, events", f"{events / took:.0f} a second for {took:.0f} s")
    tell("busy task, paints", f"{page.evaluate('paints') / took:.1f} a second")
    tell("busy task, longest task", f"{max(traces[0].tasks_ms):.0f} ms of CPU; > 100 ms: {traces[0].long(100)}")
    tell("busy task, heap", f"{heap_mb(page) - before:+.1f} MB")
    if stage.api("GET", f"/v1/tasks/{task}")["status"] != "completed":
        stage.api("POST", f"/v1/tasks/{task}/cancel", {})
        stage.until(task, "cancelled", "completed")


def many_lines(stage: Stage, page: Page) -> None:
    """100,000 lines of log, of which the newest are kept."""
    step = {"id": "talk", "tool": "stage.chatter", "with": {"lines": LINES}}
    task = stage.start({"name": "talk", "steps": [step]})
    stage.until(task, "completed")
    page.goto(f"{stage.url}/tasks/{task}?step=talk&tab=logs")
    page.locator(".log-line").first.wait_for()
    whole = page.get_by_role("button", name="From the first line")
    whole.click()
    expect(page.locator("[data-line='1']")).to_be_visible()
    scrolled(page, "log", ".log-lines")
    tell("log, nodes", page.locator("*").count())


TO_THE_END: Final = """async () => {
  const place = document.querySelector('#content');
  while (document.querySelector('.groups > button')) {
    place.scrollTop = place.scrollHeight;
    await new Promise(done => requestAnimationFrame(done));
  }
}"""


def many_tasks(stage: Stage, page: Page) -> None:
    """A long list, page by page, then as a whole, then filtered."""
    plan = {"name": "one", "steps": [{"id": "a", "tool": "stage.echo", "with": {"value": 1}}]}
    with ThreadPoolExecutor(STARTERS) as starters:
        tasks = [*starters.map(lambda _: stage.start(plan), range(TASKS))]
    for task in tasks[-STARTERS:]:
        stage.until(task, "completed")
    page.goto(stage.url)
    page.locator(".task-row").first.wait_for()
    began = time.monotonic()
    with traced(page) as traces:
        page.evaluate(TO_THE_END)
    rows = page.locator(".task-row")
    tell(
        f"{TASKS:,} tasks, read to the end",
        f"{rows.last.get_attribute('aria-setsize')} in {time.monotonic() - began:.1f} s",
    )
    tell(f"{TASKS:,} tasks, longest task", f"{max(traces[0].tasks_ms):.0f} ms of CPU; > 50 ms: {traces[0].long(50)}")
    page.evaluate("document.querySelector('#content').scrollTop = 0")
    scrolled(page, f"{TASKS:,} tasks", "#content")
    tell(f"{TASKS:,} tasks, nodes", page.locator("*").count())
    tell(f"{TASKS:,} tasks, heap", f"{heap_mb(page):.0f} MB")
    with traced(page) as traces:
        page.get_by_label("Filter tasks").fill("plan:none")
        page.keyboard.press("Enter")
        expect(page.get_by_text("No task with plan none")).to_be_visible()
        page.get_by_role("button", name="Clear").click()
        rows.first.wait_for()
    tell(f"{TASKS:,} tasks, filtering", f"{max(traces[0].tasks_ms):.0f} ms of CPU; > 50 ms: {traces[0].long(50)}")


NOTICE: Final = """(function look() {
  if (document.querySelector('.task-row, [data-step]')) window.usable = performance.now();
  else requestAnimationFrame(look);
})()"""
"""By the page's own clock: from the first byte asked for to the frame with the first row."""


def first_load(stage: Stage, page: Page) -> None:
    """From nothing to a page that can be used."""
    page.add_init_script(NOTICE)
    for _ in range(LOADS):
        page.goto(stage.url)
        page.locator(".task-row").first.wait_for()
        tell("first load, usable after", f"{page.evaluate('window.usable') / 1000:.2f} s")
    sizes = json.loads((STATIC / "build.json").read_text())["sizes"]
    document = (STATIC / "index.html").read_text()
    first = sum(size["gzip"] for name, size in sizes.items() if name in document and name != "index.html")
    tell("first load, script and style", f"{first / 1024:.1f} KiB gzip")


def main() -> None:
    """Print one line per figure."""
    expect.set_options(timeout=120_000)
    build()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        stage = Stage(Path(folder) / "project")
        stage.serve()
        try:
            for measure in (large_task, large_output, busy_task, many_lines, many_tasks, first_load):
                with stage.page(browser) as page:
                    measure(stage, page)
        finally:
            stage.close()
            browser.close()


if __name__ == "__main__":
    main()
