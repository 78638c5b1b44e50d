"""Tasks that have ended leave nothing but their results, also where their engine was killed."""

from pathlib import Path

import pytest

from tests.fault.leftovers import campaign


@pytest.mark.req("W.5")
def test_nothing_is_left_over(tmp_path: Path) -> None:
    """Mixed tasks and kills; the whole campaign is `python -m tests.fault.leftovers`."""
    assert campaign(tmp_path, tasks=8, kills=1) == []
