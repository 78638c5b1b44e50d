"""OpenTelemetry (extra `otel`): spans and figures to whatever speaks OTLP. Imported only where it is configured.

The figures are those of `/metrics`, sent as they stand; the spans are made of the journal (`spans`). Both leave from
threads of their own: when nobody listens there, the engine does not notice.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from everstep.adapters.telemetry.spans import Place, Span, Spans
from everstep.domain.histogram import BOUNDS_S, Family, Histogram
from everstep.ports.store import Journaled
from everstep.wire.event import decode

EVERY_S: Final = 60.0
CLOSE_S: Final = 5.0
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE


def from_environment(environment: Mapping[str, str], families: Callable[[], Iterable[Family]], version: str) -> "Otel":
    """As `OTEL_*` says; the exporters read most of it themselves."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # nobody's terminal, unless they ask for it
    traces = environment.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
    metrics = environment.get("OTEL_METRICS_EXPORTER", "otlp") == "otlp"
    every_s = float(environment.get("OTEL_METRIC_EXPORT_INTERVAL", EVERY_S * 1000)) / 1000
    named = Resource.create({"service.version": version, "process.pid": os.getpid()})
    if "OTEL_SERVICE_NAME" not in environment and "service.name" not in environment.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        named = named.merge(Resource({"service.name": "everstep"}))
    return Otel(
        OTLPSpanExporter() if traces else None,
        OTLPMetricExporter() if metrics else None,
        families,
        resource=named,
        every_s=every_s,
    )


class Otel:
    """Answers `Telemetry`."""

    def __init__(
        self,
        spans: SpanExporter | None,
        metrics: MetricExporter | None,
        families: Callable[[], Iterable[Family]],
        *,
        resource: Resource,
        every_s: float = EVERY_S,
    ) -> None:
        self._spans = Spans()
        self._traces = None if spans is None else BatchSpanProcessor(spans)
        self._metrics = metrics
        self._families = families
        self._resource = resource
        self._scope = InstrumentationScope("everstep", str(resource.attributes.get("service.version", "")))
        self._began_ns = time.time_ns()
        self._missed = 0
        self._closing = threading.Event()
        self._sender = threading.Thread(target=self._send_figures, args=(every_s,), name="everstep-otel", daemon=True)
        if metrics is not None:
            self._sender.start()

    def told(self, events: Sequence[Journaled]) -> None:
        """Into spans; the batch is sent by a thread of the SDK."""
        if self._traces is None:
            return
        for event in events:
            for span in self._spans.of(decode(event.encoded)):
                self._traces.on_end(self._readable(span))

    def missed(self) -> None:
        """Their spans are missing from the traces."""
        self._missed += 1

    async def close(self) -> None:
        """Send what is left, off the loop."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._closing.set()
        if self._traces is not None:
            self._traces.shutdown()  # type: ignore[no-untyped-call]
        if self._metrics is not None:
            self._sender.join(CLOSE_S)
            self._metrics.shutdown(CLOSE_S * 1000)

    # Spans

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=_context(span.place),
            parent=None if span.parent is None else _context(span.parent),
            resource=self._resource,
            attributes=span.attributes,
            links=[Link(_context(place), {"everstep.link": why}) for place, why in span.links],
            kind=SpanKind.CLIENT if "everstep.attempt" in span.attributes else SpanKind.INTERNAL,
            instrumentation_scope=self._scope,
            status=Status(StatusCode.OK) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.began * 1_000_000,
            end_time=max(span.ended, span.began) * 1_000_000,
        )

    # Figures

    def _send_figures(self, every_s: float) -> None:
        while not self._closing.wait(every_s):
            self._send()
        self._send()

    def _send(self) -> None:
        assert self._metrics is not None
        now = time.time_ns()
        metrics = [self._metric(family, now) for family in self._families() if family.samples]
        scoped = ScopeMetrics(self._scope, metrics, "")
        self._metrics.export(MetricsData([ResourceMetrics(self._resource, [scoped], "")]))

    def _metric(self, family: Family, now: int) -> Metric:
        unit = "s" if family.kind == "histogram" else "1"
        name = family.name.removesuffix("_total").removesuffix("_seconds").replace("everstep_", "everstep.", 1)
        points = [(dict(zip(family.labels, values, strict=True)), sample) for values, sample in family.samples.items()]
        numbers = [
            NumberDataPoint(labels, self._began_ns, now, sample)
            for labels, sample in points
            if not isinstance(sample, Histogram)
        ]
        match family.kind:
            case "histogram":
                of_times = [
                    self._times(labels, sample, now) for labels, sample in points if isinstance(sample, Histogram)
                ]
                return Metric(name, family.help, unit, HistogramData(of_times, _CUMULATIVE))
            case "counter":
                return Metric(name, family.help, unit, Sum(numbers, _CUMULATIVE, is_monotonic=True))
            case _:
                return Metric(name, family.help, unit, Gauge(numbers))

    def _times(self, labels: dict[str, str], seen: Histogram, now: int) -> HistogramDataPoint:
        counts = [*seen.counts]
        return HistogramDataPoint(
            attributes=labels,
            start_time_unix_nano=self._began_ns,
            time_unix_nano=now,
            count=sum(counts),
            sum=seen.total_s,
            bucket_counts=counts,
            explicit_bounds=BOUNDS_S,
            min=0.0,
            max=0.0,
        )


def _context(place: Place) -> SpanContext:
    return SpanContext(trace_id=place.trace, span_id=place.span, is_remote=False, trace_flags=_SAMPLED)
