"""A sketch tells quantiles within five per cent, adds up, and lets what was long ago fade."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.sketch import Sketch, bucket_of, sketch_of
from everstep.wire.history import decode_sketch, encode_sketch

times = st.lists(st.floats(min_value=0, max_value=1e8), min_size=1, max_size=50)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_quantiles_are_right_within_a_bucket(share: float) -> None:
    draw = random.Random(1)
    seen = sorted(draw.lognormvariate(6, 1) for _ in range(5_000))
    found = sketch_of(seen).quantile_ms(share)
    assert found == pytest.approx(seen[int(share * len(seen))], rel=0.05)


def test_nothing_seen_is_nothing_known() -> None:
    assert Sketch().quantile_ms(0.5) is None


@given(times, times)
def test_two_sketches_are_the_sketch_of_both(one: list[float], other: list[float]) -> None:
    both = sketch_of(one)
    both.merge(sketch_of(other))
    whole = sketch_of([*one, *other])
    assert (both.counts, both.n) == (whole.counts, whole.n)
    assert both.total_ms == pytest.approx(whole.total_ms)


@given(times)
def test_what_is_kept_is_what_was_seen(seen: list[float]) -> None:
    sketch = sketch_of(seen)
    assert decode_sketch(encode_sketch(sketch), sketch.n, sketch.total_ms) == sketch


def test_a_clock_that_went_back_counts_as_no_time() -> None:
    sketch = sketch_of([-5])
    assert (bucket_of(-5), sketch.n, sketch.total_ms) == (0, 1, 0)


def test_what_was_long_ago_fades() -> None:
    """A tool that became ten times slower: after as many calls again the old times weigh a third, then nothing."""
    sketch = Sketch()
    for ms in [100] * 2_000 + [1_000] * 4_000:
        sketch.add(ms)
        sketch.fade(2_000, 1_000)
    assert sketch.n <= 2_000
    assert (sketch.quantile_ms(0.2) or 0) == pytest.approx(1_000, rel=0.06)
