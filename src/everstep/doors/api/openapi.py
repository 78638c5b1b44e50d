"""The OpenAPI 3.1 document: the route table and the shapes, put together. It decides nothing, it only tells."""

import re
from collections.abc import Mapping
from typing import Final

from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.api import shapes
from everstep.doors.api.context import KEY_HEADER
from everstep.doors.api.routes import ROUTES, Route

_PARAM: Final = re.compile(r"\{(\w+)\}")
KEYED: Final = frozenset({"tasks.create", "tasks.fork", "tasks.undo"})
MATCHED: Final = frozenset({"PATCH", "POST", "DELETE"})
SCOPES: Final = {"r": "read", "w": "write", "answer": "answer", "admin": "admin"}


def document(version: str, told: Mapping[str, str]) -> JsonObject:
    """Every route with what it takes and gives; `told` says of each handler what it does."""
    paths: dict[str, JsonValue] = {}
    for route in ROUTES:
        at = paths.setdefault(route.path, {})
        assert isinstance(at, dict)
        at[route.method.lower()] = operation(route, told[route.handler])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Everstep",
            "version": version,
            "description": "Durable tasks for AI agents. Every refusal is problem+json with a stable `error.code`.",
        },
        "paths": paths,
        "components": {
            "schemas": {**shapes.OBJECTS},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def operation(route: Route, told: str) -> JsonObject:
    """One route."""
    found: JsonObject = {
        "operationId": route.handler.replace(".", "_") + ("" if route.path.startswith("/v1") else "_again"),
        "summary": told,
        "parameters": [*parameters(route)],
        "responses": responses(route),
    }
    if route.scope == "open":
        found["security"] = []
    else:
        found["x-scope"] = SCOPES[route.scope]
    if route.body:
        found["requestBody"] = {
            "required": route.handler in shapes.REQUIRED,
            "content": {"application/json": {"schema": body(route)}},
        }
    return found


def body(route: Route) -> JsonObject:
    """What a route takes: closed, as every request is."""
    fields: JsonObject = {name: shapes.FIELDS.get(name, shapes.ANY) for name in sorted(route.body)}
    schema: JsonObject = {"type": "object", "properties": fields, "additionalProperties": False}
    if route.handler in shapes.REQUIRED:
        schema["required"] = [*shapes.REQUIRED[route.handler]]
    return schema


def parameters(route: Route) -> list[JsonObject]:
    """What stands in the path, in the query and in headers."""
    found: list[JsonObject] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAM.findall(route.path)
    ]
    for name in sorted(route.query):
        schema = shapes.QUERY_OF.get((route.handler, name)) or shapes.QUERY.get(name, shapes.TEXT)
        found.append({"name": name, "in": "query", "schema": schema})
    if route.handler in KEYED:
        found.append(_header(KEY_HEADER, "the caller's own name for the task: the same key, the same task"))
    if route.method in MATCHED and "{task}" in route.path:
        found.append(_header("if-match", 'act only on the version `"<seq>"` that was seen'))
    return found


def responses(route: Route) -> JsonObject:
    """What comes back; every refusal looks alike."""
    media = shapes.MEDIA.get(route.handler)
    if media is not None:
        good: JsonObject = {"description": "as asked for", "content": {kind: {"schema": shapes.ANY} for kind in media}}
        found: JsonObject = {"200": good}
        if route.handler == "artifacts.get":
            found["206"] = good
    else:
        replies = shapes.REPLIES.get(route.handler, {200: shapes.OBJECT})
        found = {str(status): _reply(schema) for status, schema in replies.items()}
    problem: JsonObject = {"application/problem+json": {"schema": shapes.ref("Problem")}}
    return {**found, "default": {"description": "refused", "content": problem}}


def _reply(schema: JsonObject) -> JsonObject:
    if schema is shapes.NOTHING:
        return {"description": "done"}
    return {"description": "done", "content": {"application/json": {"schema": schema}}}


def _header(name: str, description: str) -> JsonObject:
    return {"name": name, "in": "header", "description": description, "schema": shapes.TEXT}
