"""Sketches as they are kept: bucket and count in turn."""

import json

from everstep.domain.sketch import Sketch


def encode_sketch(sketch: Sketch) -> str:
    """Whole counts as whole numbers; faded ones to a hundredth."""
    flat: list[float] = []
    for bucket in sorted(sketch.counts):
        count = round(sketch.counts[bucket], 2)
        flat += (bucket, int(count) if count == int(count) else count)
    return json.dumps(flat, separators=(",", ":"))


def decode_sketch(text: str, n: float, total_ms: float) -> Sketch:
    """The sketch again."""
    flat = json.loads(text)
    return Sketch(counts=dict(zip(flat[::2], flat[1::2], strict=True)), n=n, total_ms=total_ms)
