"""The document says what the server does: schemathesis asks every operation whatever the document allows, and more."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

from tests.e2e.commands import Project
from tests.e2e.test_serve import PLAN, Server

EXAMPLES = int(os.environ.get("EVERSTEP_EXAMPLES", "2"))
"""Per operation; a longer search: EVERSTEP_EXAMPLES=200."""
load_all_checks()
NOT_OURS = [CHECKS.get_one("positive_data_acceptance")]
"""What a schema allows may still be no plan, no cursor, no answer to this question."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with TemporaryDirectory(prefix="es-") as folder:
        project = Project(Path(folder))
        project.write("plans/nap.plan.yaml", PLAN)
        project.write("everstep.toml", '[serve]\nrate = "100000/1s"\n')
        one = Server(project)
        one.ask("POST", "/v1/tasks", {"plan_name": "nap"})
        yield one
        if one.process.poll() is None:
            one.stop()


def test_the_document_is_openapi_and_its_schemas_are_schemas(server: Server) -> None:
    status, document = server.ask("GET", "/v1/openapi.json")
    assert (status, document["openapi"]) == (200, "3.1.0")
    assert server.ask("GET", "/v1/openapi.json", authorization="")[0] == 401
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_schemathesis_finds_nothing(server: Server) -> None:
    token = {"Authorization": f"Bearer {server.token}"}
    schema = schemathesis.openapi.from_url(f"{server.ready['url']}/v1/openapi.json", headers=token)
    failed = []
    for found in schema.exclude(path_regex="/v1/tokens/.+").get_all_operations():  # it would revoke its own
        operation = cast("Any", found).ok()
        try:
            search(operation, token)
        except (schemathesis.errors.SchemathesisError, FailureGroup) as error:
            failed.append(f"{operation.label}: {error}")
    assert not failed, "\n\n".join(failed)
    assert server.ask("GET", "/v1/health")[0] == 200


def search(operation: Any, token: dict[str, str]) -> None:
    """Requests that the document allows, and some that it does not."""

    @given(case=operation.as_strategy() | operation.as_strategy(schemathesis.GenerationMode.NEGATIVE))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        case.call_and_validate(headers=token, excluded_checks=NOT_OURS)

    ask()
