"""Durations and sizes: what is read, and the one spelling that is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.ids import Millis
from everstep.domain.quantities import DURATION_MS_MAX, format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "length", "written"),
    [
        ("500ms", 500, "500ms"),
        ("30s", 30_000, "30s"),
        ("90s", 90_000, "1m30s"),
        ("1h30m", 5_400_000, "1h30m"),
        ("2d", 172_800_000, "2d"),
        ("36h", 129_600_000, "1d12h"),
        ("10m5ms", 600_005, "10m5ms"),
        ("365d", DURATION_MS_MAX, "365d"),
    ],
)
def test_durations(text: str, length: int, written: str) -> None:
    assert parse_duration(text) == length
    assert format_duration(Millis(length)) == written


@pytest.mark.parametrize(
    "text",
    ["", "30", "0s", "30 s", "30 sec", "1.5h", "-1s", "30m1h", "1h1h", "366d", "1hm", "s", "٣s", "1h ", "9" * 99],
)
def test_no_durations(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(1, DURATION_MS_MAX))
def test_a_duration_reads_back(length: int) -> None:
    assert parse_duration(format_duration(Millis(length))) == length


@pytest.mark.parametrize(
    ("text", "size", "written"),
    [
        ("1B", 1, "1B"),
        ("64KB", 64_000, "64KB"),
        ("1024B", 1024, "1KiB"),
        ("512MiB", 512 * 1024**2, "512MiB"),
        ("1000MB", 10**9, "1GB"),
        ("1000KiB", 1_024_000, "1000KiB"),
        ("1024KB", 1_024_000, "1000KiB"),
    ],
)
def test_sizes(text: str, size: int, written: str) -> None:
    assert parse_size(text) == size
    assert format_size(size) == written


@pytest.mark.parametrize("text", ["", "1", "0B", "1.5GB", "1 GB", "1gb", "-1B", "1TB", "B"])
def test_no_sizes(text: str) -> None:
    assert parse_size(text) is None


@given(st.integers(1, 2**53))
def test_a_size_reads_back(size: int) -> None:
    assert parse_size(format_size(size)) == size
