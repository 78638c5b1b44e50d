"""The text format: what must be escaped is escaped, buckets add up."""

from everstep.domain.histogram import BOUNDS_S, Family, Histogram, Labels
from everstep.wire.prometheus import write_families


def test_labels_are_escaped_and_samples_sorted() -> None:
    samples: dict[Labels, float | Histogram] = {('b"\\\n',): 2.0, ("a",): 1}
    text = write_families([Family(name="x_total", kind="counter", help="X.", labels=("tool",), samples=samples)])
    assert text.decode() == (
        '# HELP x_total X.\n# TYPE x_total counter\nx_total{tool="a"} 1\nx_total{tool="b\\"\\\\\\n"} 2.0\n'
    )


def test_a_time_counts_for_every_bucket_above_it() -> None:
    seen = Histogram()
    for seconds in (0.0, 0.0005, 0.3, 1e9):
        seen.observe(seconds)
    text = write_families([Family(name="s", kind="histogram", help="S.", samples={(): seen})]).decode()
    counts = [int(line.split()[-1]) for line in text.splitlines() if line.startswith("s_bucket")]
    assert len(counts) == len(BOUNDS_S) + 1
    assert counts[0] == 2, "a bound belongs to its bucket"
    assert (counts[BOUNDS_S.index(0.25)], counts[BOUNDS_S.index(0.5)]) == (2, 3)
    assert counts[-2:] == [3, 4]
    assert f"s_sum {1e9 + 0.3005!r}\ns_count 4\n" in text


def test_a_share_of_the_times_is_found_inside_its_bucket() -> None:
    seen = Histogram()
    assert seen.quantile(0.95) is None
    for _ in range(20):
        seen.observe(0.002)
    assert seen.quantile(0.95) == 0.001 + 0.0015 * 0.95
    seen.observe(1e9)
    assert seen.quantile(1.0) == BOUNDS_S[-1], "of what is longer than every bucket that much is known"
