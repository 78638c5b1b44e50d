"""Credentials in the store: by digest only, taken once, gone with whom they came from."""

import asyncio
from dataclasses import replace
from hashlib import sha256

from everstep.domain.access import Credential, CredentialKind
from everstep.domain.actors import ActorKind
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.stage import Rig


def key(id: str, kind: CredentialKind = CredentialKind.TOKEN, **more: str) -> Credential:
    made = Credential(
        id=id,
        kind=kind,
        hash=sha256(id.encode()).digest(),
        name="a name",
        owner="ana",
        actor_kind=ActorKind.HUMAN,
        actor_id="ana",
        scopes=frozenset({"read", "answer"}),
        created_at=f.NOW,
    )
    return replace(made, **more)  # type: ignore[arg-type]


async def credentials_are_found_by_their_digest(rig: Rig) -> None:
    ring = (await rig.open(f.worker())).keyring
    one = replace(key("k_1"), expires_at=f.later(60), path="/v1/events")
    await ring.add(one)
    assert await ring.find(one.hash) == one
    assert await ring.find(sha256(b"other").digest()) is None
    await ring.use("k_1", f.later(5))
    assert await ring.find(one.hash) == replace(one, last_used_at=f.later(5))


async def a_ticket_is_taken_once(rig: Rig) -> None:
    ring = (await rig.open(f.worker())).keyring
    ticket = key("k_1", CredentialKind.TICKET)
    await ring.add(ticket)
    assert await ring.take(ticket.hash, CredentialKind.CODE) is None
    taken = await asyncio.gather(*(ring.take(ticket.hash, CredentialKind.TICKET) for _ in range(8)))
    assert [one for one in taken if one is not None] == [ticket]
    assert await ring.find(ticket.hash) is None


async def what_is_made_with_a_token_goes_with_it(rig: Rig) -> None:
    ring = (await rig.open(f.worker())).keyring
    token, other = key("k_1"), key("k_3")
    session = key("k_2", CredentialKind.SESSION, parent="k_1")
    ticket = key("k_4", CredentialKind.TICKET, parent="k_1")
    for one in (token, session, other, ticket):
        await ring.add(one)
    assert [one.id for one in await ring.bearers()] == ["k_1", "k_2", "k_3"]
    assert await ring.change("k_1", frozenset({"read"}))
    assert [sorted(one.scopes) for one in await ring.bearers()] == [["read"], ["read"], ["answer", "read"]]
    assert await ring.revoke("k_1")
    assert [one.id for one in await ring.bearers()] == ["k_3"]
    assert await ring.find(ticket.hash) is None
    assert not await ring.revoke("k_1")
    assert not await ring.change("k_1", frozenset({"read"}))


async def expired_credentials_are_forgotten(rig: Rig) -> None:
    ring = (await rig.open(f.worker())).keyring
    kept, gone = key("k_1"), replace(key("k_2"), expires_at=f.later(10))
    await ring.add(kept)
    await ring.add(gone)
    await ring.forget(f.later(10))
    assert await ring.find(gone.hash) == gone
    await ring.forget(f.later(11))
    assert (await ring.find(gone.hash), await ring.find(kept.hash)) == (None, kept)
