"""The moving picture of the README: a real demo in a terminal, killed and taken up, and the dashboard beside it.

An animated PNG, since it is the screenshots one after the other and nothing else: no palette, no encoder.
"""

import os
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import Stage

ROOT: Final = Path(__file__).resolve().parents[1]
SIZE: Final = (1200, 675)
LINES: Final = 26
SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
DEMO: Final = ("everstep", "demo", "--fast")
COLOURS: Final = {"light": ("#f6f7f9", "#14181f"), "dark": ("#0e1116", "#e6eaf0")}

Theme = Literal["light", "dark"]
Frame = tuple[bytes, float]
"""A picture, and for how many seconds it stands."""


def demo() -> list[str]:
    """What the demo says, line by line."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", *DEMO], cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=300
        )
    return [line[11:] if line[:2] == "20" else line for line in done.stderr.splitlines()]  # the day says nothing here


def terminal(page: Page, lines: Sequence[str], theme: Theme) -> bytes:
    """The last lines, as a terminal shows them."""
    back, text = COLOURS[theme]
    page.set_content("<pre></pre>")
    page.evaluate(
        """([lines, back, text]) => {
          const pre = document.querySelector('pre');
          pre.textContent = lines.join('\\n');
          const paper = {margin: 0, padding: '20px 28px', color: text, font: '14px/1.6 monospace', overflow: 'hidden'};
          Object.assign(document.body.style, {margin: 0, background: back});
          Object.assign(pre.style, paper);
        }""",
        [[f"$ {' '.join(DEMO)}", *lines][-LINES:], back, text],
    )
    return page.screenshot()


def frames(stage: Stage, browser: Browser, theme: Theme, said: list[str]) -> Iterator[Frame]:
    """Killed, taken up, watched, approved on a phone, done."""
    killed = next(n for n, line in enumerate(said) if line.startswith("kill -9"))
    asks = next(n for n, line in enumerate(said) if line.startswith("Waits for you"))
    blank = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=theme)
    screen = blank.new_page()
    yield terminal(screen, said[: killed - 1], theme), 1.2
    yield terminal(screen, said[: killed + 1], theme), 1.5
    yield terminal(screen, said[: killed + 6], theme), 1.5
    yield terminal(screen, said[: asks + 2], theme), 1.2
    task = stage.start("brief", topic="solar storage", gate=f"hero-{theme}")
    with stage.page(browser, f"/tasks/{task}", theme=theme) as page:
        page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
        expect(page.locator("[data-step=pages]")).to_be_visible()
        expect(page.locator(".task-progress")).to_contain_text("left")
        yield page.screenshot(), 2.0
    stage.open_gate(f"hero-{theme}")
    pause = stage.until(task, "paused")["pause"]["id"]
    with stage.page(browser, f"/inbox/{pause}", width=390, theme=theme) as page:
        page.set_viewport_size({"width": 390, "height": SIZE[1] - 40})
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        yield on_a_desk(screen, page.screenshot(), theme), 2.0
        page.get_by_role("button", name="Approve", exact=True).click()
        expect(page.get_by_text("Answered by local")).to_be_visible()
    stage.until(task, "completed")
    yield terminal(screen, said, theme), 2.5
    blank.close()


def on_a_desk(page: Page, phone: bytes, theme: Theme) -> bytes:
    """A phone's picture in the middle."""
    page.set_content("<img>")
    page.evaluate(
        """async ([bytes, back]) => {
          const img = document.querySelector('img');
          const desk = {margin: 0, background: back, display: 'grid', placeItems: 'center', height: '100vh'};
          Object.assign(document.body.style, desk);
          Object.assign(img.style, {border: '1px solid #7b8494', borderRadius: '18px'});
          img.src = URL.createObjectURL(new Blob([new Uint8Array(bytes)], {type: 'image/png'}));
          await img.decode();
        }""",
        [[*phone], COLOURS[theme][0]],
    )
    return page.screenshot()


def chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The parts of a PNG: kind and content."""
    at = len(SIGNATURE)
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        at += 12 + length


def chunk(kind: bytes, content: bytes) -> bytes:
    """One part, as it is written."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def animated(pictures: Sequence[Frame]) -> bytes:
    """All of them in one file, for ever; whoever cannot move them shows the first."""
    parts = [[*chunks(picture)] for picture, _ in pictures]
    (header,) = {content for one in parts for kind, content in one if kind == b"IHDR"}
    written = SIGNATURE + chunk(b"IHDR", header) + chunk(b"acTL", struct.pack(">II", len(pictures), 0))
    number = 0
    for n, (one, (_, seconds)) in enumerate(zip(parts, pictures, strict=True)):
        place = struct.pack(">IIIIIHHBB", number, *SIZE, 0, 0, round(seconds * 100), 100, 0, 0)
        written += chunk(b"fcTL", place)
        number += 1
        for content in (content for kind, content in one if kind == b"IDAT"):
            if n == 0:
                written += chunk(b"IDAT", content)
                continue
            written += chunk(b"fdAT", struct.pack(">I", number) + content)
            number += 1
    return written + chunk(b"IEND", b"")
