"""Traces of agents: LangSmith's runs and OpenTelemetry's spans about generative models, as JSON or JSON lines.

Messages, tool calls and tool results become events by time, each once, although every model call repeats the messages
before it. The session is the thread or conversation, or else the trace. Instructions to a model are skipped. The
metadata contains ``model``, ``trace``, ``tool`` and ``call``. The id of a message depends on its conversation, its
content and the number of equal messages before it.

LangSmith: runs from ``list_runs`` and the API, also nested. OpenTelemetry: OTLP-JSON files of its collector, with
``gen_ai`` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict, as_list
from zettel.transcripts.records import rejected

from . import langsmith_runs, otel_spans
from .trace_steps import TraceStep, events_in_steps

name = "traces"

_OTEL = {"resourceSpans", "scopeSpans"}
_LANGSMITH = {"run_type", "start_time"}
_LIST_KEYS = ("resourceSpans", "runs")


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with OTLP's or LangSmith's keys."""
    keys = keys_in(head)
    return keys >= _OTEL or keys >= _LANGSMITH


def read(path: Path) -> Iterator[Record]:
    """Yield the events by time; a temporary file contains the steps. Raises ``BadRecord``."""
    return events_in_steps(_steps(path))


def _steps(path: Path) -> Iterator[TraceStep | Rejected]:
    for entry in json_records(path, _LIST_KEYS):
        if isinstance(entry, Rejected):
            yield entry
            continue
        fields = as_dict(entry.value)
        spans = [as_dict(part) for part in as_list(fields.get("resourceSpans"))] or [fields]
        try:
            if "run_type" in fields:
                yield from langsmith_runs.steps_in(fields, entry.source)
            elif any("scopeSpans" in part for part in spans):
                for part in spans:
                    yield from otel_spans.steps_in(part, entry.source)
            else:
                yield rejected(entry.source, "expected a run of LangSmith, or resourceSpans of OpenTelemetry")
        except RecursionError:
            yield rejected(entry.source, "the JSON is nested too deeply")
