"""Pictures of every page of the dashboard, at three widths, in both themes: `make screenshots`, into `screenshots/`.

`--docs` takes only those that the README and the guide show, into `docs/img/`.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, expect, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from scripts.build_dashboard import build  # noqa: E402
from scripts.hero import animated, demo, frames  # noqa: E402
from tests.browser.stage import Stage, chromium  # noqa: E402
from tests.browser.test_stories import BROKEN  # noqa: E402

OUT: Final = ROOT / "screenshots"
WIDTHS: Final = (320, 768, 1440)
DOCS: Final = ROOT / "docs/img"
SHOWN: Final[tuple[tuple[str, str, int, Literal["light", "dark"]], ...]] = (
    ("tasks-light", "tasks", 1440, "light"),
    ("tasks-dark", "tasks", 1440, "dark"),
    ("task-running", "running", 1440, "light"),
    ("task-failed", "failed", 1440, "light"),
    ("task-recovered", "recovered", 1440, "light"),
    ("inbox-approval", "approval", 1440, "dark"),
    ("inbox-approval-phone", "approval", 390, "light"),
    ("inbox-question", "question", 1440, "light"),
    ("inbox-uncertain", "uncertain", 1440, "light"),
    ("plan", "plan", 1440, "light"),
    ("health-breaker", "health", 1440, "light"),
    ("stats", "stats", 1440, "dark"),
)
"""Picture, place, width, theme."""
BYTES_MAX: Final = 250_000
HERO_BYTES_MAX: Final = 2_000_000
POST: Final = {
    "name": "post",
    "title": "Post it",
    "steps": [{"id": "post", "tool": "stage.post", "with": {"text": "Storage is getting cheaper", "gate": "never"}}],
}
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def main(*, docs: bool) -> None:
    """A project with something on every page, and everything that can be seen of it."""
    build()
    out = DOCS if docs else OUT
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        stage = Stage(Path(folder) / "project")
        stage.serve()
        try:
            places = prepare(stage)
            if docs:
                for picture, place, width, theme in SHOWN:
                    shoot(stage, browser, {place: places[place]}, width, theme, {place: out / f"{picture}.png"})
                move(stage, browser)
                lost(stage, browser, places["running"], out / "connection-lost.png")
            else:
                everything(stage, browser, places)
        finally:
            stage.close()
            browser.close()
    for file in out.iterdir() if docs else ():
        most = HERO_BYTES_MAX if file.name.startswith("hero") else BYTES_MAX
        assert file.stat().st_size <= most, f"{file.name} is larger than {most} bytes"
    print(f"{len(list(out.iterdir()))} pictures in {out.relative_to(ROOT)}/")


def everything(stage: Stage, browser: Browser, places: dict[str, tuple[str, str]]) -> None:
    """Every page, every width, both themes, and the page without a server."""
    for theme in THEMES:
        for width in WIDTHS:
            files = {name: OUT / f"{name}-{width}-{theme}.png" for name in places}
            shoot(stage, browser, places, width, theme, files)
    lost(stage, browser, places["running"], OUT / "connection-lost-1440-light.png")


def move(stage: Stage, browser: Browser) -> None:
    """The moving picture, in both themes."""
    said = demo()
    for theme in THEMES:
        shown = [*frames(stage, browser, theme, said)]
        (DOCS / f"hero-{theme}.png").write_bytes(animated(shown))


def prepare(stage: Stage) -> dict[str, tuple[str, str]]:
    """Name of a picture -> where it is taken, and a text that must be on it."""
    uncertain, recovered = stage.start(POST), stage.start("hold", gate="crash")
    for task in (uncertain, recovered):
        stage.heard(task, "attempt.started", 2 if task == recovered else 1)
    stage.kill()
    stage.serve()
    stage.open_gate("crash")
    stage.until(recovered, "completed")
    unsure = stage.until(uncertain, "paused")
    failed = stage.start(BROKEN, gate="never")
    stage.until(failed, "failed")
    stage.open_gate("open")
    for topic in ("heat pumps", "grid storage", "second-life batteries"):
        done = stage.until(stage.start("brief", topic=topic), "paused")
        stage.api("POST", f"/v1/inbox/{done['pause']['id']}/answer", done["pause"]["answers"][0]["request"]["body"])
        stage.until(done["id"], "completed")
    for _ in range(4):
        stage.until(stage.start("hold", gate="open"), "completed")
    running = stage.start("brief", topic="tidal power", gate="later")
    asking = stage.until(stage.start("incident"), "paused")
    approving = stage.until(stage.start("brief"), "paused")
    broken = stage.until(stage.start("fix"), "paused")
    failing = stage.start("publish")  # last: its failures open a breaker that others would wait for
    return {
        "tasks": ("/", "Needs you"),
        "running": (f"/tasks/{running}", "Read 6 pages"),
        "failed": (f"/tasks/{failed}?step=publish", "the other side answered 502"),
        "recovered": (f"/tasks/{recovered}?step=wait&tab=attempts", "abandoned"),
        "uncertain": (f"/inbox/{unsure['pause']['id']}", "What was sent"),
        "held": (f"/tasks/{failing}?step=publish&tab=attempts", "Try 1"),
        "deciding": (f"/tasks/{approving['id']}", "What will happen"),
        "inbox": ("/inbox", "Needs you"),
        "approval": (f"/inbox/{approving['pause']['id']}", "What will happen"),
        "question": (f"/inbox/{asking['pause']['id']}", "Restart, wait or escalate?"),
        "tool-error": (f"/inbox/{broken['pause']['id']}", "What went wrong"),
        "plans": ("/plans", "brief"),
        "plan": ("/plans/brief", "What it does"),
        "health": ("/health", "Breakers"),
        "stats": ("/stats", "Outcomes"),
    }


def shoot(
    stage: Stage,
    browser: Browser,
    places: dict[str, tuple[str, str]],
    width: int,
    theme: Literal["light", "dark"],
    files: dict[str, Path],
) -> None:
    """All of them, at one width."""
    with stage.page(browser, width=width, theme=theme) as page:
        for name, (path, text) in places.items():
            page.goto(stage.url + path)
            expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
            expect(page.locator("main").get_by_text(text).locator("visible=true").first).to_be_visible()
            expect(page.get_by_text("Reading…")).to_have_count(0)
            expect(page.locator("[aria-busy=true]")).to_have_count(0)
            page.screenshot(path=files[name])


def lost(stage: Stage, browser: Browser, place: tuple[str, str], file: Path) -> None:
    """The server is gone, and what was known stays."""
    with stage.page(browser, place[0]) as page:
        expect(page.get_by_text(place[1]).first).to_be_visible()
        stage.kill()
        expect(page.get_by_role("alert")).to_contain_text("Lost the connection")
        page.screenshot(path=file)


if __name__ == "__main__":
    main(docs="--docs" in sys.argv[1:])
