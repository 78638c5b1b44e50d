"""What several tests of tools share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.adapters.post import Post, at_work


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    with at_work(tmp_path / "box") as post:
        yield post
