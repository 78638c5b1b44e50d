"""What crosses `/v1`, as JSON Schema: the objects of replies, the fields of bodies, the keys of queries. Data only.

Replies may gain fields, so nothing here forbids more; requests are closed, and their names come from the route table.
"""

from collections.abc import Mapping
from typing import Final

from everstep.domain.actors import ActorKind
from everstep.domain.failure import Category
from everstep.domain.pauses import PauseStatus, PauseType
from everstep.domain.plan import Effect
from everstep.domain.states import AttemptStatus, StepStatus, TaskStatus
from everstep.domain.values import JsonObject, JsonValue

TEXT: Final[JsonObject] = {"type": "string"}
FLAG: Final[JsonObject] = {"type": "boolean"}
COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}
NUMBER: Final[JsonObject] = {"type": "number"}
OBJECT: Final[JsonObject] = {"type": "object"}
ANY: Final[JsonObject] = {}
TIME: Final[JsonObject] = {"type": "string", "format": "date-time"}
DIGEST: Final[JsonObject] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}


def maybe(schema: JsonObject) -> JsonObject:
    """Or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> JsonObject:
    """One of the objects below."""
    return {"$ref": f"#/components/schemas/{name}"}


def some(schema: JsonObject) -> JsonObject:
    """A list."""
    return {"type": "array", "items": schema}


def one_of(words: object) -> JsonObject:
    """One of these words."""
    listed: list[JsonValue] = [str(word) for word in words]  # type: ignore[attr-defined]
    return {"type": "string", "enum": listed}


def record_of(**fields: JsonObject) -> JsonObject:
    """An object that carries every one of these fields."""
    return {"type": "object", "properties": {**fields}, "required": [*fields]}


def page_of(name: str) -> JsonObject:
    """A part of a list."""
    return record_of(items=some(ref(name)), next_cursor=maybe(TEXT))


ACTOR: Final = record_of(kind=one_of(ActorKind), id=TEXT, via=TEXT)
TASK: Final = {
    "id": TEXT, "key": maybe(TEXT), "title": TEXT, "owner": TEXT, "status": one_of(TaskStatus), "outcome": maybe(TEXT),
    "plan": record_of(name=TEXT, digest=DIGEST, revision=maybe(COUNT)), "generation": COUNT, "epoch": COUNT,
    "recoveries": COUNT, "seq": COUNT, "priority": COUNT, "progress": OBJECT, "explain": ref("Explanation"),
    "pause": maybe(ref("Pause")), "worker": maybe(TEXT), "created_at": TIME, "started_at": maybe(TIME),
    "ended_at": maybe(TIME), "updated_at": TIME,
}  # fmt: skip
OBJECTS: Final[Mapping[str, JsonObject]] = {
    "Problem": record_of(type=TEXT, title=TEXT, status=COUNT, detail=TEXT, error=ref("Error")),
    "Error": record_of(
        id=TEXT, code=TEXT, category=one_of(Category), message=TEXT, what_to_do=TEXT, step=maybe(TEXT),
        attempt=maybe(COUNT), retry=maybe(OBJECT), impact=maybe(OBJECT), suggestions=some(OBJECT),
        details=maybe(OBJECT), cause=maybe(OBJECT),
    ),
    "Explanation": record_of(doing=TEXT, since=TIME, waiting_on=maybe(OBJECT), next=maybe(TEXT), text=TEXT),
    "Task": record_of(
        **TASK, labels=OBJECT, inputs=ANY, outputs=ANY, issues=some(OBJECT), error=maybe(ref("Error")),
        estimate=maybe(OBJECT), pauses=some(TEXT), actions=some(TEXT), limits=OBJECT, queue=maybe(OBJECT),
        parent=maybe(OBJECT), created_by=ACTOR, steps=some(ref("Step")),
    ),
    "TaskRow": record_of(**TASK, error_code=maybe(TEXT)),
    "Step": record_of(
        id=TEXT, title=maybe(TEXT), tool=maybe(TEXT), status=one_of(StepStatus), phase=maybe(TEXT), on_error=TEXT,
        needs=some(TEXT), skip=maybe(OBJECT), fraction=maybe(NUMBER), retry=maybe(OBJECT), error=maybe(OBJECT),
        attempts=some(ref("Attempt")), started_at=maybe(TIME), ended_at=maybe(TIME), duration_s=maybe(NUMBER),
    ),
    "Attempt": record_of(
        step=TEXT, number=COUNT, status=one_of(AttemptStatus), generation=COUNT, epoch=COUNT, worker=maybe(TEXT),
        tool=TEXT, tool_version=TEXT, idempotency_key=TEXT, input=OBJECT, error=maybe(OBJECT), started_at=TIME,
        ended_at=maybe(TIME),
    ),
    "Pause": record_of(
        id=TEXT, task=TEXT, step=maybe(TEXT), status=one_of(PauseStatus), title=TEXT, why=TEXT, reason=OBJECT,
        call=maybe(OBJECT), may_answer=some(TEXT), answers=some(OBJECT), opened_at=TIME, expires_at=maybe(TIME),
        answered=maybe(OBJECT), grant=maybe(TEXT),
    ),
    "Event": record_of(
        task=TEXT, seq=COUNT, at=TIME, type=TEXT, step=maybe(TEXT), generation=COUNT, actor=ACTOR, data=OBJECT
    ),
    "Artifact": record_of(digest=DIGEST, name=TEXT, step=maybe(TEXT), media_type=TEXT, bytes=COUNT, untrusted=FLAG),
    "Line": record_of(n=COUNT, at=maybe(TEXT), step=maybe(TEXT), level=maybe(TEXT), message=maybe(TEXT)),
    "Tool": record_of(
        name=TEXT, version=TEXT, description=TEXT, input_schema=OBJECT, effect=one_of(Effect), health=OBJECT
    ),
    "Breaker": record_of(
        id=TEXT, target=TEXT, state=one_of(("closed", "open", "half_open")), failures=COUNT, opened_at=maybe(TIME),
        retry_at=maybe(TIME), last_error=maybe(TEXT), held_steps=some(OBJECT),
    ),
    "Worker": record_of(
        id=TEXT, name=TEXT, host=TEXT, incarnation=TEXT, heartbeat_at=TIME, tasks=COUNT, tools=some(TEXT),
        version=TEXT, status=one_of(("live", "draining", "dead")),
    ),
    "Plan": record_of(name=TEXT, valid=FLAG),
    "Token": record_of(
        id=TEXT, kind=TEXT, name=TEXT, owner=TEXT, actor=ACTOR, scopes=some(TEXT), created_at=TIME,
        expires_at=maybe(TIME), last_used_at=maybe(TIME),
    ),
    "Health": {
        "type": "object",
        "properties": {"status": one_of(("ok", "degraded", "down")), "ready": FLAG},
        "required": ["status", "ready"],
    },
}  # fmt: skip

NOTHING: Final[JsonObject] = {}
"""A reply without a body."""
EVENTS: Final = record_of(events=some(ref("Event")), next_after=ANY, head_seq=ANY, live=FLAG)
AGAIN: Final = record_of(kept=some(TEXT), again=some(TEXT), repeats=some(OBJECT))
UNDO: Final = record_of(undo=some(TEXT), not_undoable=some(OBJECT), conflicts=some(OBJECT))
ISSUED: Final[JsonObject] = {"allOf": [ref("Token"), record_of(value=TEXT)]}
REPLIES: Final[Mapping[str, Mapping[int, JsonObject]]] = {
    "tasks.create": {201: ref("Task"), 200: ref("Task")},
    "tasks.list": {200: page_of("TaskRow")},
    "tasks.get": {200: ref("Task"), 304: NOTHING},
    "tasks.update": {200: ref("Task")},
    "tasks.delete": {204: NOTHING},
    "tasks.pause": {200: ref("Task"), 202: ref("Task")},
    "tasks.resume": {200: ref("Task"), 202: ref("Task")},
    "tasks.cancel": {200: ref("Task"), 202: ref("Task")},
    "tasks.retry": {202: ref("Task"), 200: AGAIN},
    "tasks.fork": {201: ref("Task"), 200: {"anyOf": [ref("Task"), AGAIN]}},
    "tasks.undo": {201: ref("Task"), 200: {"anyOf": [ref("Task"), UNDO]}},
    "tasks.patch": {200: record_of(revision=COUNT, digest=DIGEST, diff=some(OBJECT))},
    "events.page": {200: EVENTS},
    "events.all": {200: EVENTS},
    "steps.list": {200: page_of("Step")},
    "steps.get": {200: ref("Step")},
    "steps.attempt": {200: ref("Attempt")},
    "steps.plan": {200: record_of(revision=COUNT, digest=DIGEST, plan=OBJECT)},
    "artifacts.list": {200: page_of("Artifact")},
    "logs.read": {200: record_of(items=some(ref("Line")), next_after=COUNT)},
    "pauses.list": {200: page_of("Pause")},
    "pauses.get": {200: ref("Pause")},
    "pauses.answer": {200: ref("Pause")},
    "pauses.signal": {202: record_of(id=TEXT, delivered=COUNT), 200: record_of(id=TEXT, delivered=COUNT)},
    "plans.check": {200: record_of(valid=FLAG, problems=some(OBJECT), summary=maybe(OBJECT))},
    "plans.list": {200: page_of("Plan")},
    "plans.get": {200: ref("Plan")},
    "troubles.errors": {200: page_of("Error")},
    "troubles.breakers": {200: page_of("Breaker")},
    "troubles.reset": {200: ref("Breaker")},
    "tools.list": {200: page_of("Tool")},
    "tools.get": {200: ref("Tool")},
    "tools.health": {200: ref("Tool")},
    "access.owner": {200: record_of(owner=TEXT, actor=ACTOR, scopes=some(TEXT), limits=OBJECT, used=OBJECT)},
    "access.list_tokens": {200: page_of("Token")},
    "access.new_token": {201: ISSUED},
    "access.change_token": {200: ref("Token")},
    "access.revoke_token": {204: NOTHING},
    "access.new_code": {201: record_of(url=TEXT, expires_at=TIME)},
    "access.new_session": {201: ISSUED},
    "access.end_session": {204: NOTHING},
    "access.new_ticket": {201: record_of(ticket=TEXT, expires_at=TIME)},
    "admin.workers": {200: page_of("Worker")},
    "admin.halt": {200: record_of(halt=maybe(OBJECT))},
    "admin.health": {200: ref("Health")},
    "admin.ready": {200: ref("Health"), 503: ref("Health")},
}
"""By handler; one that is not here replies with some object."""
MEDIA: Final[Mapping[str, tuple[str, ...]]] = {
    "artifacts.get": ("application/octet-stream",),
    "export.read": ("text/csv", "application/json", "application/x-ndjson", "application/jsonl"),
    "metrics.read": ("text/plain",),
}
"""Replies that are not JSON."""

LIMIT: Final[JsonObject] = {"type": "integer", "minimum": 1, "maximum": 999_999_999_999_999}
WHOLE: Final[JsonObject] = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999}
YES_NO: Final = one_of(("0", "1", "true", "false"))
QUERY: Final[Mapping[str, JsonObject]] = {
    "limit": LIMIT, "wait": WHOLE, "tail": WHOLE, "revision": WHOLE, "needs_you": YES_NO, "ticks": YES_NO,
    "answered": YES_NO,
    "sort": one_of(("-created_at", "created_at", "-updated_at")), "reason": one_of(PauseType),
    "level": one_of(("debug", "info", "warning", "error")), "what": one_of(("tasks", "events")),
    "format": one_of(("csv", "json", "jsonl")), "category": one_of(Category), "until": TEXT,
}  # fmt: skip
"""By key; others are text."""
QUERY_OF: Final[Mapping[tuple[str, str], JsonObject]] = {
    ("events.page", "after"): WHOLE, ("logs.read", "after"): WHOLE, ("events.page", "until"): one_of(("end",)),
}  # fmt: skip
"""By handler and key, where the same word means something else."""

PRIORITY: Final[JsonObject] = {"type": "integer", "minimum": 0, "maximum": 3}
LABELS: Final[JsonObject] = {"type": "object", "additionalProperties": TEXT}
FIELDS: Final[Mapping[str, JsonObject]] = {
    "plan": OBJECT, "plan_text": TEXT, "plan_name": TEXT, "inputs": OBJECT, "title": TEXT, "labels": LABELS,
    "priority": PRIORITY, "limits": OBJECT, "deadline": TIME, "pause_timeout": NUMBER, "pause_after": TEXT,
    "continue_by": one_of(("client", "server")), "attach": FLAG, "note": TEXT,
    "mode": one_of(("graceful", "immediate")), "from_step": TEXT, "steps": some(TEXT), "confirm_effects": FLAG,
    "dry_run": FLAG, "base_revision": COUNT, "ops": some(OBJECT), "answer": TEXT, "digest": TEXT, "arguments": OBJECT,
    "at": TIME, "tool": TEXT, "event": TEXT, "key": TEXT, "id": TEXT, "name": TEXT, "owner": TEXT, "actor": OBJECT,
    "scopes": some(TEXT), "expires_in": NUMBER, "code": TEXT, "path": TEXT, "on": FLAG,
}  # fmt: skip
"""By field; others are any JSON."""
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "tasks.fork": ("from_step",),
    "tasks.patch": ("base_revision",),
    "pauses.answer": ("answer",),
    "pauses.signal": ("event",),
    "access.new_token": ("name",),
    "access.change_token": ("scopes",),
    "access.new_session": ("code",),
    "access.new_ticket": ("path",),
    "admin.halt": ("on",),
    "handing.continue": ("tool",),
}
