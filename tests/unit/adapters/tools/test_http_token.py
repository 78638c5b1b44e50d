"""Tokens that run out: fetched with the operator's secret, renewed once for all who were refused, seen by nobody."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from everstep import Plan
from everstep.domain.values import JsonObject
from everstep.testing import TestEngine
from everstep.testing.rig import Asked, Behaviour, HttpRig, Writer, answer
from tests.unit.passing import ends

SECRET = "the-refresh-token-of-ours"


class Issuer:
    """Gives tokens, and forgets them when it is told to."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.good = ""
        self.forms: list[dict[str, list[str]]] = []
        self.refuses = False

    async def token(self, asked: Asked, writer: Writer) -> bool:
        self.forms.append(parse_qs(asked.body.decode()))
        if self.refuses:
            return await answer(400, {"error": "invalid_grant"})(asked, writer)
        self.good = f"access-token-number-{len(self.given) + 1}"
        self.given.append(self.good)
        return await answer(200, {"access_token": self.good, "refresh_token": f"{SECRET}-2"})(asked, writer)

    def guarded(self) -> Behaviour:
        async def behave(asked: Asked, writer: Writer) -> bool:
            fits = asked.headers.get("authorization") == f"Bearer {self.good}"
            reply = answer(200, {"you_sent": self.good}) if fits else answer(401, b"run out")
            return await reply(asked, writer)

        return behave


def plan_of(url: str) -> Plan:
    plan = Plan("asking")
    plan.step("ask", "http.get", {"url": url})
    plan.output(got=plan.expr("ask.json"))
    return plan


def config_of(rig: HttpRig) -> JsonObject:
    target = {"url": rig.url("/api"), "auth": "secret:mine", "token_url": rig.url("/token")}
    return {"http.targets.api": target, "rates": {f"127.0.0.1:{rig.port}": "1000/1s"}}  # type: ignore[dict-item]


async def results(engine: TestEngine, plan: Plan, count: int) -> list[Any]:
    return await ends(engine, *[await engine.start(plan) for _ in range(count)])


@pytest.mark.req("L.3")
async def test_one_renewal_serves_all_who_were_refused() -> None:
    issuer = Issuer()
    async with HttpRig() as rig:
        rig.on("/token", issuer.token)
        rig.on("/api/x", issuer.guarded())
        async with TestEngine(config=config_of(rig), secrets={"mine": SECRET}) as engine:
            plan = plan_of(rig.url("/api/x"))
            assert [one.status for one in await results(engine, plan, 2)] == ["completed"] * 2
            assert len(issuer.given) == 1
            issuer.good = "nobody has this one"
            done = await results(engine, plan, 3)
            assert [one.status for one in done] == ["completed"] * 3, [one.error for one in done]
            assert len(issuer.given) == 2, "one renewal for three"
            assert [form["refresh_token"] for form in issuer.forms] == [[SECRET], [f"{SECRET}-2"]]
            told = [event.data async for event in (await engine.get(done[0].task_id)).events(follow=False)]
            said = json.dumps(told) + repr(engine.sink.notes)
            assert "access-token-number" not in said
            assert done[0].outputs == {"got": {"you_sent": "[secret:token]"}}


@pytest.mark.req("L.3")
async def test_what_cannot_be_renewed_is_not_tried_again() -> None:
    issuer = Issuer()
    async with HttpRig() as rig:
        rig.on("/token", issuer.token)
        rig.on("/api/x", issuer.guarded())
        async with TestEngine(config=config_of(rig), secrets={"mine": SECRET}) as engine:
            plan = plan_of(rig.url("/api/x"))
            await results(engine, plan, 1)
            issuer.good, issuer.refuses, before = "nobody has this one", True, rig.count("/api/x")
            task = await engine.start(plan)
            result = await task.result(on_pause="return")
            assert result.status in ("failed", "paused")
            assert rig.count("/api/x") == before + 1


async def test_a_client_with_a_password() -> None:
    issuer = Issuer()
    async with HttpRig() as rig:
        rig.on("/token", issuer.token)
        rig.on("/api/x", issuer.guarded())
        async with TestEngine(config=config_of(rig), secrets={"mine": "client:password"}) as engine:
            assert [one.status for one in await results(engine, plan_of(rig.url("/api/x")), 1)] == ["completed"]
    assert issuer.forms == [{"grant_type": ["client_credentials"]}]
    assert rig.asked[0].headers["authorization"] == "Basic Y2xpZW50OnBhc3N3b3Jk"
