"""`webhook.send`: signed, keyed, and only to where the configuration says."""

import base64
import hashlib
import hmac
import json

import pytest

from everstep import Plan, PlanError
from everstep.testing import TestEngine
from everstep.testing.rig import HttpRig, answer

SECRETS = {"old": "an-old-signing-secret", "new": "a-new-signing-secret"}


def plan_of(target: str = "crm") -> Plan:
    plan = Plan("telling")
    plan.step("tell", "webhook.send", {"target": target, "event": "order.made", "data": {"b": 1, "a": [2]}})
    return plan


@pytest.mark.req("Comm.1")
async def test_a_signed_message() -> None:
    async with HttpRig() as rig:
        rig.on("/hook", answer(200, b"thanks"))
        config = {"webhook.targets.crm": {"url": rig.url("/hook"), "secrets": ["new", "old"], "drops_repeats": True}}
        async with TestEngine(config=config, secrets=SECRETS) as engine:  # type: ignore[arg-type]
            task = await engine.start(plan_of())
            assert (await task.result()).status == "completed"
            (started,) = [event.data async for event in task.events(follow=False) if event.type == "attempt.started"]
    asked = rig.asked[0]
    assert asked.headers["webhook-id"] == started["idempotency_key"]
    assert started["effect"] == "idempotent"
    assert json.loads(asked.body) == {"type": "order.made", "data": {"a": [2], "b": 1}}
    signed = f"{asked.headers['webhook-id']}.{asked.headers['webhook-timestamp']}.".encode() + asked.body
    marks = [
        "v1," + base64.b64encode(hmac.new(SECRETS[name].encode(), signed, hashlib.sha256).digest()).decode()
        for name in ("new", "old")
    ]
    assert asked.headers["webhook-signature"] == " ".join(marks)


async def test_only_to_targets_of_the_configuration() -> None:
    async with HttpRig() as rig:
        config = {"webhook.targets.crm.url": rig.url("/hook")}
        async with TestEngine(config=config) as engine:
            with pytest.raises(PlanError):
                await engine.start(plan_of("other"))
        assert rig.count() == 0
        rig.on("/hook", answer(302, Location="http://127.0.0.2/"))
        async with TestEngine(config=config) as engine:
            result = await (await engine.start(plan_of())).result()
        assert result.error is not None
        assert result.error["code"] == "http_redirects"
        assert rig.count("/hook") == 1
