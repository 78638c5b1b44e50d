"""Some of the programs that try to get out (S50); all of them: `python -m tests.security.escapes`."""

import random

from tests.security.escapes import LAYERS, escaped, programs


def test_there_are_enough_of_them() -> None:
    assert len({name for name, _ in programs()}) >= 120


async def test_a_program_that_tries_to_get_out_stays_inside() -> None:
    for name, code in random.sample([*programs()], 6):
        without = random.choice([*LAYERS.values()])
        assert not await escaped(code, without), (name, without)


async def test_one_without_walls_would_get_out() -> None:
    """Whoever looks would see it."""
    assert await escaped("open('{outside}/canary').read()", ("landlock", "namespaces", "seccomp"))
