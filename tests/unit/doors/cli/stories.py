"""Events as a door sends them, for tests of what is made of them."""

from typing import Any

Json = dict[str, Any]

TASK = "t_7k2m9qx4h8d3c5v6b7n8m9q0w1"
PAUSE = "p_3c8h9qx4h8d3c5v6b7n8m9q0w1"


def task(**more: Any) -> Json:
    """A Task as a request answers it."""
    steps = [
        {"id": "hits", "title": "Search", "status": "pending", "tool": "search.local"},
        {"id": "pages", "title": "Read 6 pages", "status": "pending", "tool": "http.get"},
        {"id": "send", "title": "Send", "status": "pending", "tool": "mail.send"},
    ]
    return {
        "id": TASK,
        "title": "Research brief",
        "status": "queued",
        "plan": {"name": "research-brief", "digest": "sha256:9f"},
        "seq": 1,
        "progress": {"fraction": 0, "done": 0, "total": 3},
        "pause": None,
        "pauses": [],
        "steps": steps,
        **more,
    }


class Story:
    """A journal being written, one second per event."""

    def __init__(self, first: int = 2) -> None:
        self._seq = first - 1

    def event(self, type: str, step: str | None = None, /, **data: Any) -> Json:
        """The next frame."""
        self._seq += 1
        return {
            "type": "event",
            "event": {
                "task": TASK,
                "seq": self._seq,
                "at": f"2026-11-15T18:02:{self._seq:02d}.000Z",
                "type": type,
                "step": step,
                "generation": 1,
                "actor": {"kind": "human", "id": "ana", "via": "http"},
                "data": data,
            },
        }

    def attempt(self, step: str, number: int = 1) -> Json:
        """A call begins."""
        return self.event("attempt.started", step, attempt=number, tool="search.local", effect="pure")

    def completed(self, step: str, value: Any, summary: str | None = None) -> Json:
        """A step ends well."""
        output = {"value": value, "digest": "sha256:1", "bytes": 2}
        return self.event("step.completed", step, attempt=1, output=output, summary=summary, via="tool", duration_s=0.4)

    def failed(self, step: str, message: str = "the server is down") -> Json:
        """A step fails for good."""
        return self.event("step.failed", step, attempt=4, error=error(message), duration_s=4.0)

    def paused(self, kind: str = "uncertainOutcome", step: str | None = "send", **reason: Any) -> Json:
        """A step asks."""
        return self.event("pause.opened", step, **pause(kind, step, **reason))


def error(message: str = "the server is down") -> Json:
    return {"code": "http_503", "category": "transient", "message": message, "what_to_do": "try later", "attempt": 4}


CALL = {
    "tool": "my.mail",
    "tool_version": "1",
    "effect": "once",
    "input": {"value": {"to": "ana", "text": "hi"}, "digest": "sha256:77", "bytes": 2, "untrusted": False},
    "editable": ["text"],
}
ANSWERS = {
    "uncertainOutcome": ("happened", "not_happened", "fail", "skip"),
    "toolError": ("retry", "retry_with", "supply_output", "skip", "fail", "cancel"),
    "inputRequired": ("answer", "skip", "cancel"),
    "unresolvableParams": ("supply_arguments", "skip", "cancel"),
    "schemaMismatch": ("supply_arguments", "skip", "cancel"),
    "userRequested": ("resume", "cancel"),
    "approvalRequired": ("approve", "edit", "reject", "answer"),
}
NEEDS = {
    "happened": "output",
    "supply_output": "output",
    "answer": "value",
    "supply_arguments": "arguments",
    "retry_with": "arguments",
    "edit": "arguments",
    "reject": "note",
}


def pause(kind: str, step: str | None = "send", **reason: Any) -> Json:
    """A Pause with every answer it allows."""
    about = {"digest": "sha256:77"} if kind == "approvalRequired" else {}
    answers: list[Json] = [
        {
            "answer": word,
            "label": word,
            "schema": {"properties": {NEEDS[word]: {}}} if word in NEEDS else None,
            "request": {"body": {"answer": word, **({} if word == "answer" else about)}},
        }
        for word in ANSWERS[kind]
    ]
    fields: Json = {"type": kind, "blockedStep": step, "suggestedTool": "my.mail", **reason}
    return {
        "id": PAUSE,
        "task": TASK,
        "step": step,
        "status": "open",
        "title": "Did it happen?",
        "why": "the call was cut off",
        "reason": fields,
        "guidance": None,
        "call": CALL if kind == "approvalRequired" else None,
        "answers": answers,
        "opened_at": "2026-11-15T18:03:15.004Z",
    }
