"""Traces of agents: LangSmith's runs and OpenTelemetry's spans about generative models, as JSON or JSON lines.

What users and models said, calls of tools and their answers become events in the order in which they happened, each
once, though every call of a model repeats what came before. The session is the thread or conversation, or else the
trace. Who instructs a model is left out. ``model``, ``trace``, ``tool`` and ``call`` are in the metadata. A message
is known again by its conversation, its words and how often they were said there.

LangSmith: runs as ``list_runs`` and the API give them, also nested. OpenTelemetry: OTLP-JSON as its collector writes
files, with ``gen_ai`` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import Record, Rejected, langsmith_runs, otel_spans
from .content_blocks import as_dict, as_list
from .json_keys import keys_in
from .json_records import json_records
from .records import rejected
from .trace_steps import Step, told

name = "traces"

_OTEL = {"resourceSpans", "scopeSpans"}
_LANGSMITH = {"run_type", "start_time"}
_WITHIN = ("resourceSpans", "runs")


def sniff(path: Path, head: bytes) -> bool:
    """JSON with OTLP's or LangSmith's own names."""
    keys = keys_in(head)
    return keys >= _OTEL or keys >= _LANGSMITH


def read(path: Path) -> Iterator[Record]:
    """The events in order; steps wait for their turn in a temporary file. Raises ``BadRecord``."""
    return told(_steps(path))


def _steps(path: Path) -> Iterator[Step | Rejected]:
    for one in json_records(path, _WITHIN):
        if isinstance(one, Rejected):
            yield one
            continue
        fields = as_dict(one.value)
        spans = [as_dict(part) for part in as_list(fields.get("resourceSpans"))] or [fields]
        try:
            if "run_type" in fields:
                yield from langsmith_runs.steps_in(fields, one.source)
            elif any("scopeSpans" in part for part in spans):
                for part in spans:
                    yield from otel_spans.steps_in(part, one.source)
            else:
                yield rejected(one.source, "expected a run of LangSmith, or resourceSpans of OpenTelemetry")
        except RecursionError:
            yield rejected(one.source, "its JSON is nested too deeply")
