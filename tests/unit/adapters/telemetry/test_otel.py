"""OpenTelemetry: the tree of spans, links over a crash, figures as they stand; and one real receiver on loopback."""

import asyncio
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from everstep import Engine, Plan, tool
from everstep.adapters.telemetry.otel import Otel
from everstep.adapters.telemetry.spans import place_of
from everstep.domain.errors import SettingsError
from everstep.domain.ids import Seq, TaskId
from everstep.domain.values import JsonObject
from everstep.ports.tool import Transient
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools


async def spans_of(engine: TestEngine, *tasks: str, apart: int | None = None) -> list[ReadableSpan]:
    """The spans of whole journals; `apart`: another process takes over after so many events."""
    kept = InMemorySpanExporter()
    for task in tasks:
        events = [one async for one in engine.desk.events(TaskId(task), Seq(0), follow=False)]
        for part in [events] if apart is None else [events[:apart], events[apart:]]:
            otel = Otel(kept, None, list, resource=Resource({"service.name": "test"}))
            otel.told(part)
            otel._traces.force_flush()  # type: ignore[union-attr]
    return [*kept.get_finished_spans()]


def named(spans: list[ReadableSpan]) -> dict[str, ReadableSpan]:
    assert len({span.context.span_id for span in spans}) == len(spans)
    return {span.name: span for span in spans}


async def test_a_task_is_a_tree_of_steps_and_attempts() -> None:
    tools = Tools()
    tools.raises["x"] = [Transient("not now"), None]
    plan = Plan.from_dict({"name": "p", "steps": [
        {"id": "a", "tool": "test.echo", "with": {"label": "x"}},
        {"id": "b", "tool": "test.echo", "with": {"value": "private"}},
    ]})  # fmt: skip
    async with TestEngine(tools.all()) as engine:
        task = await engine.start(plan)
        await engine.clock.advance("1m")
        spans = named(await spans_of(engine, task.id))
    assert set(spans) == {"task p", "step a", "step b", "attempt a#1", "attempt a#2", "attempt b#1"}
    root = spans["task p"]
    assert root.parent is None
    for name, span in spans.items():
        assert span.context.trace_id == root.context.trace_id
        parent = {"step": "task p", "attempt": f"step {name.split()[-1][0]}"}.get(name.split()[0])
        assert (span.parent and span.parent.span_id) == (parent and spans[parent].context.span_id), name
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time  # type: ignore[operator]
        assert (span.attributes or {})["everstep.task"] == task.id
        assert "private" not in str(span.to_json()), "no value of a step leaves"
    failed, again = spans["attempt a#1"], spans["attempt a#2"]
    assert (failed.status.status_code, again.status.status_code) == (StatusCode.ERROR, StatusCode.OK)
    assert dict(failed.attributes or {})["error.type"] == "tool_transient"
    assert dict(again.attributes or {})["everstep.tool"] == "test.echo"
    (link,) = again.links
    assert (link.context.span_id, dict(link.attributes or {})) == (failed.context.span_id, {"everstep.link": "retry"})


async def test_after_a_crash_another_process_writes_into_the_same_trace_and_links_what_was_lost() -> None:
    tools = Tools()
    async with TestEngine(tools.all()) as engine:
        task = await engine.start(Plan.from_dict({"name": "p", "steps": [{"id": "h", "tool": "test.hold"}]}))
        await engine.clock.advance("5s")
        await engine.crash()
        await engine.clock.advance("1s")
        tools.release.set()
        await engine.clock.advance("5s")
        events = [one async for one in engine.desk.events(task.task_id, Seq(0), follow=False)]
        cut = next(at for at, one in enumerate(events) if one.type == "task.recovered")
        spans = named(await spans_of(engine, task.id, apart=cut))
    assert set(spans) == {"task", "step h", "attempt h#1", "attempt h#2"}, "who came later does not know the plan"
    assert {span.context.trace_id for span in spans.values()} == {place_of(task.task_id).trace}
    (link,) = spans["attempt h#2"].links
    assert link.context.span_id == spans["attempt h#1"].context.span_id
    assert dict(link.attributes or {}) == {"everstep.link": "recovery"}
    lost = spans["attempt h#1"]
    assert lost.end_time - lost.start_time >= 5_000_000_000  # type: ignore[operator]


async def test_a_child_points_at_the_step_that_made_it(tmp_path: Path) -> None:
    kid: Any = {"name": "kid", "steps": [{"id": "k", "tool": "test.echo"}]}
    plan = Plan.from_dict({"name": "p", "steps": [{"id": "sub", "tool": "plan.run", "with": {"plan": kid}}]})
    plan.trusted = True
    async with TestEngine(Tools().all(), workspace=tmp_path) as engine:
        task = await engine.start(plan)
        for _ in range(10):  # plans are read in a thread
            await asyncio.sleep(0.005)
            await engine.clock.advance("1s")
        (child,) = {step.child for step in (await task.refresh()).steps.values()}
        assert child is not None
        spans = named(await spans_of(engine, child))
    (link,) = spans["task kid"].links
    assert link.context.span_id == place_of(task.task_id, "sub").span
    assert dict(link.attributes or {}) == {"everstep.link": "child_of"}


class Receiver(HTTPServer):
    """What listens for OTLP over HTTP: keeps every request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receive)
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        server = self.server
        assert isinstance(server, Receiver)
        if self.path == "/v1/traces":
            server.traces.append(ExportTraceServiceRequest.FromString(body))
        elif self.path == "/v1/metrics":
            server.metrics.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@tool("test.fast", effect="pure")
async def fast(n: int = 0) -> int:
    """Nothing much."""
    return n


PLAN: JsonObject = {"name": "p", "steps": [{"id": "a", "tool": "test.fast"}, {"id": "b", "tool": "test.fast"}]}


async def test_a_real_receiver_gets_spans_and_figures(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.server_port}")
    async with Engine(tmp_path / "everstep.db", tools=[fast]) as engine:
        await (await engine.start(Plan.from_dict(PLAN))).result()
    spans = [
        span
        for sent in receiver.traces
        for one in sent.resource_spans
        for scope in one.scope_spans
        for span in scope.spans
    ]
    assert sorted(span.name for span in spans) == ["attempt a#1", "attempt b#1", "step a", "step b", "task p"]
    assert len({span.trace_id for span in spans}) == 1
    (service,) = {
        attribute.value.string_value
        for sent in receiver.traces
        for one in sent.resource_spans
        for attribute in one.resource.attributes
        if attribute.key == "service.name"
    }
    assert service == "everstep"
    last = receiver.metrics[-1].resource_metrics[0].scope_metrics[0].metrics
    metrics = {metric.name: metric for metric in last}
    (calls,) = metrics["everstep.step"].histogram.data_points
    assert calls.count == sum(calls.bucket_counts) == 2
    assert {one.key: one.value.string_value for one in calls.attributes} == {"tool": "test.fast", "result": "succeeded"}
    assert metrics["everstep.tasks_created"].sum.data_points[0].as_int == 1


async def test_nobody_listens_and_the_engine_does_not_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with Engine(tmp_path / "everstep.db", tools=[fast]) as engine:
        result = await (await engine.start(Plan.from_dict(PLAN))).result()
    assert result.status == "completed"


async def test_without_the_extra_the_line_to_install_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces")
    monkeypatch.setitem(__import__("sys").modules, "everstep.adapters.telemetry.otel", None)
    with pytest.raises(SettingsError) as refused:
        await Engine(tmp_path / "everstep.db").open()
    assert "pip install 'everstep[otel]'" in str(refused.value.what_to_do)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    async with Engine(tmp_path / "other.db"):
        pass


async def test_without_a_word_nothing_is_sent_and_nothing_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("", "TRACES_", "METRICS_"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}ENDPOINT", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "everstep.adapters.telemetry.otel", None)
    async with Engine(tmp_path / "everstep.db"):
        pass
