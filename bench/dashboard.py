"""How the dashboard copes with a large task: `python -m bench.dashboard`. Figures only: frames depend on the machine.

500 steps, one of them with 10,000 items: until it can be used, until its whole journal is there, frames while
scrolling, tasks of the page that blocked longer than 50 ms, nodes and heap.
"""

import tempfile
import time
from pathlib import Path
from typing import Final

from playwright.sync_api import expect, sync_playwright

from scripts.build_dashboard import build
from tests.browser.stage import Stage, chromium

LONG: Final = """
window.blocks = [];
new PerformanceObserver(seen => blocks.push(...seen.getEntries().map(one => Math.round(one.duration))))
  .observe({type: 'longtask', buffered: true});
"""
SCROLL: Final = """async () => {
  const place = document.querySelector('.rows-scroll');
  const frames = [];
  let last = performance.now();
  for (let n = 0; n < 240; n += 1) {
    place.scrollTop += 700;
    await new Promise(done => requestAnimationFrame(done));
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames.sort((a, b) => a - b);
}"""


def main() -> None:
    """Print one line per figure."""
    expect.set_options(timeout=120_000)
    build()
    steps = [
        {"id": "n", "tool": "stage.numbers", "with": {"many": 10_000}},
        {"id": "many", "for_each": "${n}", "parallel": 50, "tool": "stage.item", "with": {"n": "${item}"}},
        *({"id": f"s{n}", "tool": "stage.echo", "with": {"value": n}} for n in range(498)),
    ]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        stage = Stage(Path(folder) / "project")
        stage.serve()
        try:
            task = stage.start({"name": "huge", "steps": steps})
            head = stage.until(task, "completed")["seq"]
            with stage.page(browser) as page:
                page.context.add_init_script(LONG)
                began = time.monotonic()
                page.goto(f"{stage.url}/tasks/{task}?tab=journal")
                expect(page.locator("[data-step=n]")).to_be_visible()
                print(f"usable after         {time.monotonic() - began:6.2f} s")
                expect(page.get_by_text(f"{head:,} events")).to_be_visible()
                print(f"journal whole after  {time.monotonic() - began:6.2f} s ({head:,} events)")
                page.locator("[data-step=many] .twist").click()
                frames = page.evaluate(SCROLL)
                print(f"frames p50 p95 max   {frames[120]:6.1f} {frames[228]:.1f} {frames[239]:.1f} ms")
                print(f"blocks > 50 ms       {page.evaluate('blocks')}")
                print(f"nodes                {page.locator('*').count()}")
                page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
                print(f"heap                 {page.evaluate('performance.memory.usedJSHeapSize') / 1e6:6.1f} MB")
        finally:
            stage.close()
            browser.close()


if __name__ == "__main__":
    main()
