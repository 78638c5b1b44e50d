"""Figures as Prometheus reads them (text format 0.0.4)."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from everstep.domain.histogram import BOUNDS_S, Family, Histogram, Labels

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_LIMITS: Final = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")


def write_families(families: Iterable[Family]) -> bytes:
    """All of them, as one text."""
    return "".join(f"{line}\n" for family in families for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for values, sample in sorted(family.samples.items(), key=lambda one: one[0]):
        if isinstance(sample, Histogram):
            for limit, count in zip(_LIMITS, accumulate(sample.counts), strict=True):
                yield f"{family.name}_bucket{_labels((*family.labels, 'le'), (*values, limit))} {count}"
            yield f"{family.name}_sum{_labels(family.labels, values)} {sample.total_s!r}"
            yield f"{family.name}_count{_labels(family.labels, values)} {sample.n}"
        else:
            yield f"{family.name}{_labels(family.labels, values)} {sample!r}"


def _labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{','.join(pairs)}}}"
