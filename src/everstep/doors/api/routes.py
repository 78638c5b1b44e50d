"""The route table, as data: every door reads it, none has a route of its own. What a route does is its handler's."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from everstep.domain.errors import NotFound, RequestError
from everstep.domain.record import record
from everstep.doors.api.request import segments

Scope: TypeAlias = Literal["open", "r", "w", "answer", "admin"]

_NOTHING: Final[frozenset[str]] = frozenset()


@record
class Route:
    """One way in. `body` and `query` are the names it takes; `local` more fields, through the local door only."""

    method: str
    path: str
    scope: Scope
    handler: str
    body: frozenset[str] = _NOTHING
    query: frozenset[str] = _NOTHING
    local: frozenset[str] = _NOTHING
    streams: bool = False


def _get(path: str, handler: str, query: str = "", *, scope: Scope = "r", streams: bool = False) -> Route:
    return Route(method="GET", path=path, scope=scope, handler=handler, query=frozenset(query.split()), streams=streams)


def _post(path: str, scope: Scope, handler: str, body: str, *, local: str = "") -> Route:
    fields, more = frozenset(body.split()), frozenset(local.split())
    return Route(method="POST", path=path, scope=scope, handler=handler, body=fields, local=more)


def _route(method: str, path: str, scope: Scope, handler: str, *, body: str, local: str = "") -> Route:
    fields, more = frozenset(body.split()), frozenset(local.split())
    return Route(method=method, path=path, scope=scope, handler=handler, body=fields, local=more)


_TASK: Final = "/v1/tasks/{task}"
_OF_TASKS: Final = "status plan tool reason label parent since until q needs_you sort"
"""Which tasks of a list."""
ROUTES: Final = (
    _post(
        "/v1/tasks",
        "w",
        "tasks.create",
        "plan plan_text plan_name inputs title labels priority limits deadline pause_timeout pause_after "
        "continue_by attach",
        local="trusted file unannounced",
    ),
    _get("/v1/tasks", "tasks.list", f"{_OF_TASKS} limit cursor"),
    _get(_TASK, "tasks.get", "include"),
    _route("PATCH", _TASK, "w", "tasks.update", body="title labels priority pause_timeout"),
    _route("DELETE", _TASK, "w", "tasks.delete", body=""),
    _get(f"{_TASK}/events", "events.page", "after limit wait ticks types until", streams=True),
    _get("/v1/events", "events.all", "after limit wait ticks types", streams=True),
    _get(f"{_TASK}/steps", "steps.list", "limit cursor"),
    _get(f"{_TASK}/steps/{{step}}", "steps.get"),
    _get(f"{_TASK}/steps/{{step}}/attempts/{{number}}", "steps.attempt"),
    _get(f"{_TASK}/plan", "steps.plan", "revision"),
    _get(f"{_TASK}/estimate", "steps.estimate"),
    _get(f"{_TASK}/artifacts", "artifacts.list"),
    _get(f"{_TASK}/artifacts/{{digest}}", "artifacts.get"),
    _get(f"{_TASK}/logs", "logs.read", "step attempt level after tail limit wait"),
    _post(f"{_TASK}/pause", "w", "tasks.pause", "mode note"),
    _post(f"{_TASK}/resume", "w", "tasks.resume", "note"),
    _post(f"{_TASK}/cancel", "w", "tasks.cancel", "note"),
    _post(f"{_TASK}/retry", "w", "tasks.retry", "from_step arguments note confirm_effects dry_run"),
    _post(f"{_TASK}/fork", "w", "tasks.fork", "from_step inputs arguments title note dry_run"),
    _post(f"{_TASK}/undo", "w", "tasks.undo", "steps note dry_run"),
    _post(f"{_TASK}/continue", "w", "handing.continue", "tool arguments"),
    _post(f"{_TASK}/complete", "w", "handing.complete", "result note"),
    _get(f"{_TASK}/variables", "handing.variables"),
    _route("PATCH", f"{_TASK}/variables", "w", "handing.set_variables", body="", local="variables"),
    _get(f"{_TASK}/handoff", "handing.handoff"),
    _post(f"{_TASK}/handle", "w", "handing.handle", "", local="ttl_ms notes"),
    _route("PATCH", f"{_TASK}/plan", "w", "tasks.patch", body="base_revision note ops dry_run"),
    _get("/v1/inbox", "pauses.list", "task type plan answered limit cursor"),
    _get("/v1/inbox/{pause}", "pauses.get"),
    _post(
        "/v1/inbox/{pause}/answer", "answer", "pauses.answer", "answer note digest arguments output value max at tool"
    ),
    _post("/v1/signals", "answer", "pauses.signal", "event key data id"),
    _post("/v1/plans/check", "r", "plans.check", "plan plan_text plan_name inputs", local="trusted file"),
    _post("/v1/estimates", "r", "plans.estimate", "plan plan_text plan_name inputs", local="trusted file"),
    _get("/v1/plans", "plans.list"),
    _get("/v1/plans/{name}", "plans.get"),
    _get("/v1/schemas/plan", "plans.schema"),
    _get("/v1/errors", "troubles.errors", "category tool code task since limit cursor"),
    _get("/v1/breakers", "troubles.breakers"),
    _post("/v1/breakers/{breaker}/reset", "admin", "troubles.reset", ""),
    _get("/v1/tools", "tools.list"),
    _get("/v1/tools/{name}", "tools.get"),
    _post("/v1/tools/{name}/health", "w", "tools.health", ""),
    _get("/v1/workers", "admin.workers", scope="admin"),
    _get("/v1/openapi.json", "openapi.read"),
    _get("/v1/owner", "access.owner"),
    _get("/v1/tokens", "access.list_tokens", scope="admin"),
    _post("/v1/tokens", "admin", "access.new_token", "name owner actor scopes expires_in"),
    _route("PATCH", "/v1/tokens/{token}", "admin", "access.change_token", body="scopes"),
    _route("DELETE", "/v1/tokens/{token}", "admin", "access.revoke_token", body=""),
    _post("/v1/sign-in-codes", "admin", "access.new_code", ""),
    _post("/v1/sessions", "open", "access.new_session", "code"),
    _route("DELETE", "/v1/sessions/current", "r", "access.end_session", body=""),
    _post("/v1/tickets", "r", "access.new_ticket", "path"),
    _route("PUT", "/v1/halt", "admin", "admin.halt", body="on mode note"),
    _get("/v1/stats", "stats.read", "range plan task"),
    _get("/v1/export", "export.read", f"what format type category code {_OF_TASKS}"),
    _get("/v1/metrics", "metrics.read", scope="admin"),
    _get("/metrics", "metrics.read", scope="admin"),
    _get("/v1/health", "admin.health", scope="open"),
    _get("/v1/ready", "admin.ready", scope="open"),
)


@record
class Match:
    """The route of a request, and what its path names."""

    route: Route
    params: dict[str, str]


def match(method: str, path: str, routes: Iterable[Route] = ROUTES) -> Match:
    """Find the way in; raises NotFound, or a refusal that names the methods there are."""
    parts = segments(path)
    others = set()
    for route in routes:
        params = _fits(segments(route.path), parts)
        if params is not None and route.method == method:
            return Match(route=route, params=params)
        if params is not None:
            others.add(route.method)
    if others:
        allowed: list[str] = sorted(others)
        raise RequestError(
            f"{method} is not possible here, only {', '.join(allowed)}",
            code="method_not_allowed",
            details={"allow": [*allowed]},
        )
    raise NotFound("there is nothing at this path", what_to_do="see the routes in docs/reference/http.md")


def _fits(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(parts):
        return None
    params = {}
    for wanted, given in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            if not given:
                return None
            params[wanted[1:-1]] = given
        elif wanted != given:
            return None
    return params
