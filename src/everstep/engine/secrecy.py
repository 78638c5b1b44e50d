"""Secrets at the tool boundary: names become values just before a call, and values become names in what comes back.

The journal, approvals and digests hold `secret:NAME`. Nobody else ever sees the value: not even a tool's own failure.
"""

from dataclasses import replace
from typing import cast

from everstep.domain.failure import Failure
from everstep.domain.outcome import Asked
from everstep.domain.pointer import keys
from everstep.domain.raised import writable
from everstep.domain.redact import Redactor
from everstep.domain.usage import Usage
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine.catalog import Entry
from everstep.engine.classify import classify
from everstep.ports.secrets import Secrets
from everstep.ports.tool import Call, Misconfigured, NeedsInput

PREFIX = "secret:"


def revealed(entry: Entry, call: Call, owner: str, secrets: Secrets) -> Call:
    """The call with the values of the secrets it names; raises Misconfigured."""
    arguments = call.arguments
    for pointer in entry.secrets:
        arguments = cast("JsonObject", _put(arguments, tuple(keys(pointer)), owner, secrets))
    return Call(call.tool, arguments, call.effect, call.idempotency_key)


def _put(value: JsonValue, path: tuple[str, ...], owner: str, secrets: Secrets) -> JsonValue:
    if not path:
        return value if value is None else _value(str(value), owner, secrets)
    if isinstance(value, list) and path[0] == "*":
        return [_put(item, path[1:], owner, secrets) for item in value]
    if not isinstance(value, dict) or (path[0] != "*" and path[0] not in value):
        return value
    names = [*value] if path[0] == "*" else [path[0]]
    return {**value, **{name: _put(value[name], path[1:], owner, secrets) for name in names}}


def _value(name: str, owner: str, secrets: Secrets) -> str:
    name = name.removeprefix(PREFIX)
    found = secrets.get(name, owner)
    if found is None:
        raise Misconfigured(
            f"there is no secret '{name}' for '{owner}'",
            code="secret_missing",
            what_to_do=f'set EVERSTEP_SECRET_{name.upper()}, or grant it: [secrets.grants] {owner} = ["{name}"]',
        )
    return found


def judged(error: Exception, entry: Entry, redactor: Redactor) -> Failure:
    """What a tool raised, in words that hold no secret."""
    failure = classify(error, tool=entry.spec.name, adapter_says=entry.adapter.classify(error))
    details = failure.details
    return replace(
        failure,
        message=redactor.text(failure.message),
        what_to_do=redactor.text(failure.what_to_do),
        details=None if details is None else cast("JsonObject", redactor.value(details)),
    )


def asked(question: NeedsInput, usage: Usage | None, redactor: Redactor) -> Asked:
    """A tool's question, without secrets and such that it can be written down."""
    text = redactor.text(writable(str(question)))
    return Asked(question=text, schema=question.schema, by=question.by, usage=usage)
