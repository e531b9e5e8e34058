"""Exports the traces and metrics of a server by OTLP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zettel.core.telemetry import NAME
from zettel.errors import MissingExtra
from zettel.version import VERSION


@contextmanager
def exporting() -> Iterator[None]:
    """Export during the block, to OTEL_EXPORTER_OTLP_ENDPOINT, by default a collector on this machine.

    The SDK reads all its settings from OTEL_… variables. Raises ``MissingExtra``.
    """
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise MissingExtra("--otel", "otel") from error
    resource = Resource.create({"service.name": NAME, "service.version": VERSION}).merge(Resource.create())
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)
    try:
        yield
    finally:
        tracers.shutdown()
        meters.shutdown()
