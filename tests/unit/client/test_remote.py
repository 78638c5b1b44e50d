"""Whoever answers instead of an engine: a proxy on the way, a login page, something else at that address."""

import inspect

import pytest

from everstep.client import BlockingClient, Client
from everstep.domain.errors import EverstepError, Unavailable, Validation
from everstep.testing.rig import Behaviour, HttpRig, answer


@pytest.mark.parametrize("url", ["", "localhost:7717", "ftp://host", "/v1"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(Validation, match="no address"):
        Client(url)


STRANGE = [
    pytest.param(answer(200, b"<html>"), id="a page"),
    pytest.param(answer(200, [1]), id="a list"),
    pytest.param(answer(307, b"", Location="/login"), id="elsewhere"),
]


@pytest.mark.parametrize("said", STRANGE)
async def test_what_is_no_engine_is_named_so(said: Behaviour) -> None:
    async with HttpRig() as rig:
        rig.on("/v1/tasks/t_1", said)
        async with Client(rig.url("")) as client:
            with pytest.raises(Unavailable, match="no everstep"):
                await client.get("t_1")


@pytest.mark.parametrize("body", [b"", b"[]", {"error": "Bad gateway"}, {"error": {"details": "none"}}])
async def test_a_refusal_in_other_words_is_one(body: object) -> None:
    async with HttpRig() as rig:
        rig.on("/v1/tasks/t_1", answer(502, body))  # type: ignore[arg-type]
        async with Client(rig.url("")) as client:
            with pytest.raises(EverstepError, match="502"):
                await client.get("t_1")


def test_the_blocking_face_has_every_name_and_takes_the_same() -> None:
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_") and name != "close":
            blocking = inspect.signature(getattr(BlockingClient, name))
            left_out = {"headers"}
            wanted = [one for one in inspect.signature(method).parameters if one not in left_out]
            assert list(blocking.parameters) == wanted, name
