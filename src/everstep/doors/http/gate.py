"""The gate: one for http and websocket, before everything else. What it does not know it denies.

    Host -> Origin -> token -> route -> scope

A token that is wrong is never a stranger; a stranger gets the open routes and the pages, by exact match. Whoever is
inside stays watched: when a token is revoked, or loses the scope that was needed, what it has open is ended.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from everstep.domain.access import Principal
from everstep.domain.errors import EverstepError, NotAllowed, StoreError, Validation
from everstep.domain.record import record
from everstep.doors.api.routes import ROUTES, Match, Route, match
from everstep.doors.http.answer import App, Message, Receive, Scope, Send, marking, new_request_id, refuse
from everstep.doors.http.body import CallerLeft, bounded, headers_of
from everstep.doors.http.names import Names
from everstep.doors.http.rate import Turnstile
from everstep.facade.access import AccessDesk

SCOPE_OF: Final[Mapping[str, str | None]] = {
    "open": None, "r": "read", "w": "write", "answer": "answer", "admin": "admin",
}  # fmt: skip
"""What a route asks of a token; None: nothing at all."""
SUBPROTOCOL: Final = "everstep.v1"
TICKET: Final = "ticket."
LOOK_S: Final = 2.0
"""How often those inside are looked at: a revocation is obeyed within twice that."""
REVOKED: Final = 4401

_log: Final = logging.getLogger("everstep.doors")


@record
class Mount:
    """Another door beside `/v1`: everything at its path and below, for tokens with this scope; None: for anybody."""

    app: App
    scope: str | None
    vouch: Callable[[str], Awaitable[Principal | None]] | None = None
    """Somebody else whose word on a token counts there."""
    challenge: str | None = None
    """What whoever is refused there is told."""


@record
class Visit:
    """Somebody who was let in."""

    principal: Principal | None
    match: Match | None
    needs: str | None


@dataclass(slots=True, eq=False)
class Inside:
    """What one visitor has open."""

    visit: Visit
    task: "asyncio.Task[None]"
    began: bool = False
    """The reply has begun, or the WebSocket is open."""
    revoked: bool = False

    def end(self) -> None:
        """Its token is good for nothing any more."""
        self.revoked = True
        self.task.cancel()


class Gate:
    """Lets in whom the table allows, to `app`."""

    def __init__(
        self,
        app: App,
        *,
        access: AccessDesk,
        names: Names,
        turnstile: Turnstile,
        body_bytes_max: int,
        mounts: Mapping[str, Mount],
        is_page: Callable[[str], bool] = lambda _: False,
    ) -> None:
        check_scopes(ROUTES, mounts)
        self._app = app
        self._access = access
        self._names = names
        self._turnstile = turnstile
        self._body_bytes_max = body_bytes_max
        self._mounts = mounts
        self._is_page = is_page
        self._inside: set[Inside] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            raise RuntimeError(f"there is no door for '{scope['type']}'")
        send = marking(send, new_request_id())
        try:
            visit = await self._admit(scope)
            principal = visit.principal
            streaming = visit.match is not None and visit.match.route.streams  # whose number is bounded by itself
            name = principal.token or principal.owner if principal else scope["path"]
            with nullcontext() if streaming else self._turnstile.inside(name):
                await self._let_in(visit, scope, bounded(receive, self._body_bytes_max), send)
        except EverstepError as error:
            mount = mounted(self._mounts, path_of(scope)) if error.code == "unauthenticated" else None
            more = {"www-authenticate": mount.challenge} if mount is not None and mount.challenge else None
            await refuse(error, scope, send, more)

    async def watch(self) -> None:
        """Until cancelled: end what revoked tokens have open."""
        while True:
            await asyncio.sleep(LOOK_S)
            seen = [one for one in self._inside if one.visit.principal is not None and one.visit.principal.token]
            if not seen:
                continue
            try:
                standing = await self._access.standing()
            except StoreError:
                continue
            for one in seen:
                assert one.visit.principal is not None
                credential = standing.get(one.visit.principal.token or "")
                if credential is None or (one.visit.needs is not None and one.visit.needs not in credential.scopes):
                    one.end()

    async def empty(self, within_s: float) -> None:
        """Wait until everybody has left, or for so long."""
        tasks = [one.task for one in self._inside]
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)

    # Who may come in

    async def _admit(self, scope: Scope) -> Visit:
        headers = headers_of(scope)
        method, path = scope.get("method", "GET"), path_of(scope)
        page = scope["type"] == "http" and method == "GET" and self._is_page(path)
        self._check_names(scope, headers, page=page)
        if page:
            return Visit(principal=None, match=None, needs=None)
        principal = await self._who(scope, headers, path)
        mount = mounted(self._mounts, path)
        is_open = ((method, path) in OPEN and scope["type"] == "http") or (mount is not None and mount.scope is None)
        if principal is None and not is_open:
            raise unauthenticated()
        self._turnstile.enter(principal.token or principal.owner if principal else path)
        found = match(method, path) if mount is None else None
        needs = mount.scope if mount else SCOPE_OF[found.route.scope] if found else None
        if needs is not None and (principal is None or needs not in principal.scopes):
            raise NotAllowed(
                f"this needs a token with the scope '{needs}'",
                what_to_do="ask the operator for a token that has it",
                details={"scope": needs},
            )
        return Visit(principal=principal, match=found, needs=needs)

    def _check_names(self, scope: Scope, headers: Mapping[str, str], *, page: bool) -> None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._names.is_host(host):
            raise EverstepError(
                "this server is not asked under that name",
                code="wrong_host",
                what_to_do="ask it as localhost, or add the name to `serve.allowed_hosts`",
            )
        strange = headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not page
        if strange or (origin is not None and not self._names.is_origin(origin, host, scope["scheme"])):
            raise EverstepError(
                "a page of another origin may not ask",
                code="origin_refused",
                what_to_do="open its own page, or add the other to `serve.allowed_origins`",
            )

    async def _who(self, scope: Scope, headers: Mapping[str, str], path: str) -> Principal | None:
        """Whoever asks; None for a stranger. A credential that is wrong is refused, not overlooked."""
        said = headers.get("authorization")
        if said is not None:
            kind, _, value = said.partition(" ")
            found = await self._known(value.strip(), path) if kind.lower() == "bearer" else None
            if found is None:
                raise unauthenticated()
            return found
        ticket = ticket_in(headers) if scope["type"] == "websocket" else None
        if ticket is None:
            return None
        found = await self._access.redeem(ticket, path)
        if found is None:
            raise unauthenticated()
        return found

    async def _known(self, token: str, path: str) -> Principal | None:
        found = await self._access.authenticate(token)
        mount = mounted(self._mounts, path) if found is None else None
        return found if mount is None or mount.vouch is None else await mount.vouch(token)

    # Those inside

    async def _let_in(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        scope["everstep.principal"] = visit.principal
        scope["everstep.match"] = visit.match
        task = asyncio.current_task()
        assert task is not None
        one = Inside(visit=visit, task=task)
        self._inside.add(one)
        try:
            await self._app(scope, receive, noting(send, one))
        except asyncio.CancelledError:
            if not one.revoked:
                raise
            task.uncancel()
            await _end(one, scope, send)
        except CallerLeft:
            return
        except EverstepError as error:
            if not one.began:
                await refuse(error, scope, send)
        except Exception:  # noqa: BLE001 -- a bug behind the gate must not show its insides
            _log.exception("%s failed", scope["path"])
            if not one.began:
                await refuse(EverstepError("something went wrong inside; the log has the details"), scope, send)
        finally:
            self._inside.discard(one)


OPEN: Final = frozenset((route.method, route.path) for route in ROUTES if route.scope == "open")
"""Exactly these; a path that only looks like one of them is not."""


def check_scopes(routes: tuple[Route, ...], mounts: Mapping[str, Mount]) -> None:
    """A way in that does not say what it asks for stops the start-up."""
    for path, scope in [*((one.path, one.scope) for one in routes), *((at, one.scope) for at, one in mounts.items())]:
        if scope not in SCOPE_OF and scope not in SCOPE_OF.values():
            raise RuntimeError(f"'{path}' declares no scope")


def path_of(scope: Scope) -> str:
    """The path as it was sent: nothing is unescaped before the route is found."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def mounted(mounts: Mapping[str, Mount], path: str) -> Mount | None:
    """What is mounted at this path or above it."""
    return next((one for at, one in mounts.items() if path == at or path.startswith(f"{at}/")), None)


def ticket_in(headers: Mapping[str, str]) -> str | None:
    """A browser cannot send a header with a WebSocket; it offers its ticket as a subprotocol."""
    offered = [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",")]
    tickets = [one.removeprefix(TICKET) for one in offered if one.startswith(TICKET)]
    if len(tickets) > 1:
        raise Validation("more than one ticket is offered")
    return tickets[0] if tickets else None


def unauthenticated() -> EverstepError:
    """The same for every wrong, expired, revoked or missing credential."""
    return EverstepError(
        "a valid token is needed",
        code="unauthenticated",
        what_to_do="send Authorization: Bearer TOKEN; everstep token new NAME makes one",
    )


def noting(send: Send, one: Inside) -> Callable[[Message], Awaitable[None]]:
    """Remember whether a reply has begun."""

    async def noted(message: Message) -> None:
        one.began = True
        await send(message)

    return noted


async def _end(one: Inside, scope: Scope, send: Send) -> None:
    if not one.began:
        await refuse(unauthenticated(), scope, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": REVOKED, "reason": "the token was revoked or has expired"})
