"""A real browser against a real `everstep serve`: nothing is pretended, and a missing browser is an error."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from scripts.build_dashboard import build
from tests.browser.stage import Stage, chromium

expect.set_options(timeout=30_000)  # a limit for a machine that is busy, not a wish


@pytest.fixture(scope="session")
def built() -> None:
    """The dashboard as it is in this tree."""
    build()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--js-flags=--expose-gc"])
        yield one
        one.close()


@pytest.fixture(scope="module")
def stage(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A served project, with tools that wait for a word from the test."""
    one = Stage(tmp_path_factory.mktemp("stage") / "project")
    one.serve()
    yield one
    one.close()
