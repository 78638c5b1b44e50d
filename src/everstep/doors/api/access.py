"""Who may ask: tokens for programs, sign-in codes and sessions for people, tickets for browsers; and who one is.

Tokens are the operator's: whoever holds the scope `admin` sees and makes those of every owner, and no task of theirs.
"""

from typing import Final

from everstep.domain.access import Credential, CredentialKind
from everstep.domain.actors import ActorKind
from everstep.domain.errors import EngineClosed, EverstepError, NotFound, Validation
from everstep.domain.queue import live_tasks_max
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Fields, Response, reply, split_target
from everstep.doors.api.routes import match
from everstep.facade.access import Issued, NewToken
from everstep.wire.times import maybe_text, to_text

USUAL_SCOPES: Final = ("read", "write", "answer")
"""Everything but the operator's own."""


async def owner(back: Backing, asked: Asked) -> Response:
    """Whose token this is, what it may do, and how much there is left."""
    by, limits = asked.request.by, back.settings.limits
    return reply({
        "owner": by.owner,
        "actor": {"kind": by.actor.kind.value, "id": by.actor.id, "via": by.actor.via},
        "scopes": [*sorted(by.scopes)],
        "limits": {"live_tasks": live_tasks_max(by.owner, limits.live_tasks), "body_bytes": limits.body_bytes},
        "used": {"live_tasks": await back.desk.live_tasks(by.owner)},
    })  # fmt: skip


# --- tokens ---


async def list_tokens(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """Tokens and sessions that are good now, the oldest first; never their values."""
    return reply({"items": [token_json(one) for one in await back.desk.access.list()], "next_cursor": None})


async def new_token(back: Backing, asked: Asked) -> Response:
    """A token; its value is in this reply, and nowhere else ever again."""
    fields = asked.fields
    name = fields.some_text("name")
    kind, actor = _actor(fields, name)
    wanted = NewToken(
        name=name,
        owner=fields.text("owner") or asked.who.owner,
        actor_kind=kind,
        actor_id=actor,
        scopes=_scopes(fields, USUAL_SCOPES),
        expires_in_ms=fields.seconds("expires_in"),
    )
    return _issued(await back.desk.access.issue(wanted))


async def change_token(back: Backing, asked: Asked) -> Response:
    """Other scopes; what runs already goes on."""
    changed = await back.desk.access.change(asked.params["token"], _scopes(asked.fields, ()))
    return reply(token_json(changed))


async def revoke_token(back: Backing, asked: Asked) -> Response:
    """Good for nothing any more, and what was made with it neither."""
    await back.desk.access.revoke(asked.params["token"])
    return Response(status=204, headers={"cache-control": "no-store"}, body=b"")


# --- people and browsers ---


async def new_code(back: Backing, asked: Asked) -> Response:
    """A link that signs in whoever opens it first."""
    if back.desk.url is None:
        raise EngineClosed("this engine is not served", what_to_do="everstep serve")
    issued = await back.desk.access.new_code(asked.request.by)
    assert issued.credential.expires_at is not None
    url = f"{back.desk.url}/#code={issued.value}"
    return reply({"url": url, "expires_at": to_text(issued.credential.expires_at)}, 201)


async def new_session(back: Backing, asked: Asked) -> Response:
    """A token for a code: 12 hours without use, 30 days at most."""
    issued = await back.desk.access.open_session(asked.fields.some_text("code"))
    if issued is None:
        raise EverstepError(
            "this code is wrong, used or too old",
            code="unauthenticated",
            what_to_do="ask for another one: everstep open",
        )
    return _issued(issued)


async def end_session(back: Backing, asked: Asked) -> Response:
    """Sign out."""
    standing = await back.desk.access.standing()
    mine = standing.get(asked.request.by.token or "")
    if mine is None or mine.kind is not CredentialKind.SESSION:
        raise NotFound("this is no session", what_to_do="revoke a token: everstep token revoke ID")
    await back.desk.access.revoke(mine.id)
    return Response(status=204, headers={"cache-control": "no-store"}, body=b"")


async def new_ticket(back: Backing, asked: Asked) -> Response:
    """For a WebSocket of a browser, which cannot send a header: one use, this path, a minute."""
    path, _ = split_target(asked.fields.some_text("path"))
    found = match("GET", path)
    if not found.route.streams:
        raise Validation("'path' must be one of events")
    if "task" in found.params:
        await back.desk.get(found.params["task"], asked.who)
    issued = await back.desk.access.new_ticket(asked.request.by, path)
    assert issued.credential.expires_at is not None
    return reply({"ticket": issued.value, "expires_at": to_text(issued.credential.expires_at)}, 201)


# --- spelling ---


def token_json(one: Credential) -> JsonObject:
    """A token without its value."""
    return {
        "id": one.id,
        "kind": one.kind.value,
        "name": one.name,
        "owner": one.owner,
        "actor": {"kind": one.actor_kind.value, "id": one.actor_id, "via": "http"},
        "scopes": [*sorted(one.scopes)],
        "created_at": to_text(one.created_at),
        "expires_at": maybe_text(one.expires_at),
        "last_used_at": maybe_text(one.last_used_at),
    }


def _issued(issued: Issued) -> Response:
    return reply({**token_json(issued.credential), "value": issued.value}, 201)


def _scopes(fields: Fields, usual: tuple[str, ...]) -> frozenset[str]:
    said = fields.value("scopes")
    if said is None and usual:
        return frozenset(usual)
    if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
        raise Validation("'scopes' must be a list of texts")
    return frozenset(str(one) for one in said)


def _actor(fields: Fields, name: str) -> tuple[ActorKind, str]:
    """`{kind, id}`; usually a program of that name."""
    said = fields.map("actor") or {}
    kind, actor = said.get("kind", ActorKind.SERVICE.value), said.get("id", name)
    if set(said) - {"kind", "id"} or kind not in [*ActorKind] or not isinstance(actor, str):
        raise Validation("'actor' has a kind (human, llm, service) and an id")
    return ActorKind(str(kind)), actor
