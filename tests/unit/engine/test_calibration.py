"""Five hundred tasks with history, in virtual time: the 80 % interval covers 75 to 85 % of them."""

import pytest

from bench.calibration import TARGET, calibrate, together


@pytest.mark.req("5.4")
async def test_estimates_are_right_as_often_as_they_say() -> None:
    scores = await calibrate(500)
    whole = together(scores)
    assert whole.n >= 500
    assert TARGET[0] <= whole.share <= TARGET[1], {name: score.json() for name, score in scores.items()}
    assert all(score.share > 0.6 for score in scores.values()), "no kind of plan is left out"
