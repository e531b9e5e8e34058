"""OpenTelemetry: spans and metrics in the SDK's exporters, without content, and nothing without the program's SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests import scripted_model
from tests.http_server import PATIENCE, Asker, served
from tests.integration.test_serve import serving
from tests.waiting import until
from zettel import Memory, Scope
from zettel.core import telemetry
from zettel.errors import NotFound
from zettel.jobs import loop
from zettel.ports.language_model import Answer, Request

pytestmark = pytest.mark.integration

SECRET_WORD, QUESTION_WORD, USER = "Kestrelwood", "Heronshire", "ann-the-user"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class SmallModel:
    """A rule-based language model with the name of a real one."""

    name = "openai/gpt-4o-mini"
    concurrency = 2

    async def complete(self, request: Request) -> Answer:
        text = scripted_model.reply({"messages": [{"content": request.user}]})
        return Answer(text, "openai/gpt-4o-mini-2024", prompt_tokens=120, completion_tokens=30)

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    def price(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        return None


class Exported:
    """Spans and metrics that the program's exporters received."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self._tracers, self._meters = TracerProvider(), MeterProvider([self._reader])
        self._tracers.add_span_processor(SimpleSpanProcessor(self._spans))

    def set_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let zettel find these providers: a process may set its own only once."""
        monkeypatch.setattr(trace, "get_tracer", self._tracers.get_tracer)
        monkeypatch.setattr(metrics, "get_meter", self._meters.get_meter)
        monkeypatch.setattr(trace, "get_tracer_provider", lambda: self._tracers)
        monkeypatch.setattr(metrics, "get_meter_provider", lambda: self._meters)
        for cached in (telemetry._tracer, telemetry._histogram, telemetry._gauge):
            cached.cache_clear()

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._spans.get_finished_spans() if span.name == name]

    def names(self) -> set[str]:
        return {span.name for span in self._spans.get_finished_spans()}

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return the attributes and the data of each point of a metric."""
        data = self._reader.get_metrics_data()
        found = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return [(dict(point.attributes), point) for metric in found if metric.name == name
                for point in metric.data.data_points]  # fmt: skip

    def text(self) -> str:
        """Return all that was exported, as text."""
        spans = "".join(span.to_json() for span in self._spans.get_finished_spans())
        data = self._reader.get_metrics_data()
        return spans + ("" if data is None else data.to_json())


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    made = Exported()
    made.set_up(monkeypatch)
    yield made
    for cached in (telemetry._tracer, telemetry._histogram, telemetry._gauge):
        cached.cache_clear()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_operations_are_spans_below_the_programs_own(tmp_path: Path, exported: Exported) -> None:
    with Memory(tmp_path / "a.db", scope=Scope(user=USER)) as memory:
        with trace.get_tracer("program").start_as_current_span("answer a user") as own:
            id = memory.add(f"The safe of {SECRET_WORD} is green.", speaker=SECRET_WORD)
            memory.search(f"Which colour has the safe in {QUESTION_WORD}?")
            memory.context(f"safe in {QUESTION_WORD}")
            with pytest.raises(NotFound):
                memory.get("n_9")
            assert len([*memory.dump()]) == 1
            memory.delete(id)
        memory.flush()
    for name in ("add", "search", "context", "delete", "dump"):
        (span,) = exported.spans(f"zettel.{name}")
        assert span.parent is not None
        assert span.parent.span_id == own.get_span_context().span_id
        assert attributes(span)["zettel.operation"] == name
        assert span.status.status_code is trace.StatusCode.UNSET
    assert attributes(exported.spans("zettel.search")[0])["zettel.count"] == 1
    (failed,) = exported.spans("zettel.get")
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert failed.events == ()  # an exception's text may quote content
    assert attributes(failed)["error.type"] == "NotFound"
    durations = {point["zettel.operation"]: value for point, value in exported.points("zettel.operation.duration")}
    assert durations["search"].count == 1
    assert 0 < durations["search"].sum < 60
    assert dict(durations["get"].attributes)["error.type"] == "NotFound"
    for word in (SECRET_WORD, QUESTION_WORD, USER, id):
        assert word not in exported.text()


def test_jobs_and_model_calls_are_reported(
    tmp_path: Path, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MEASURE_SECONDS", 0.01)
    with Memory(tmp_path / "a.db", llm=SmallModel(), scope=Scope(user=USER)) as memory:  # type: ignore[arg-type]
        memory.add("I moved to Bergen.", speaker=SECRET_WORD)
        memory.flush()
        until(lambda: len(exported.points("zettel.jobs")) == 2, exported.text)
    (job,) = exported.spans("zettel.job.annotate")
    assert attributes(job) == {"zettel.job.kind": "annotate", "zettel.count": 1}
    calls = exported.spans("chat gpt-4o-mini")
    assert calls[0].parent is not None
    assert calls[0].kind is trace.SpanKind.CLIENT
    assert attributes(calls[0]) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "openai/gpt-4o-mini-2024",
        "gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 30,
    }  # fmt: skip
    tokens = {point["gen_ai.token.type"]: value for point, value in exported.points("gen_ai.client.token.usage")}
    assert tokens["input"].sum == 120 * len(calls)
    assert tokens["output"].sum == 30 * len(calls)
    assert sum(value.count for _, value in exported.points("gen_ai.client.operation.duration")) == len(calls)
    assert "annotate" in {point["zettel.job.kind"] for point, _ in exported.points("zettel.job.duration")}
    waiting = {point["zettel.job.state"]: value.value for point, value in exported.points("zettel.jobs")}
    assert waiting.keys() == {"waiting", "failed"}
    assert SECRET_WORD not in exported.text()
    assert USER not in exported.text()


def test_a_failed_job_is_an_error(tmp_path: Path, exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    from zettel.jobs.link_job import LinkJob

    async def fail(*_: Any) -> Any:
        raise NotFound("this memory", ["n_1"])

    monkeypatch.setattr(LinkJob, "do", fail)
    with Memory(tmp_path / "a.db") as memory:
        memory.add("Ann sails.")
        until(lambda: "zettel.job.link" in exported.names(), exported.names)
    failed = exported.spans("zettel.job.link")[0]
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert attributes(failed)["error.type"] == "NotFound"


def test_requests_continue_the_trace_of_the_client(tmp_path: Path, exported: Exported) -> None:
    with served(tmp_path / "a.db") as server:
        ann = server.asker(server.key("laptop", Scope(user=USER)))
        event, parent = {"content": f"The safe of {SECRET_WORD} is green."}, f"00-{TRACE}-{PARENT}-01"
        id = ann("POST", "/v1/events", event, traceparent=parent).body["id"]
        ann("POST", "/v1/search", {"question": QUESTION_WORD})
        assert ann("GET", "/v1/notes/n_9", traceparent="not a trace").status == 404
        assert ann("GET", f"/nowhere/{QUESTION_WORD}").status == 404
    (request,) = exported.spans("POST /v1/events")
    assert request.kind is trace.SpanKind.SERVER
    assert f"{request.context.trace_id:032x}" == TRACE  # type: ignore[union-attr]
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT
    assert attributes(request) == {
        "http.request.method": "POST", "url.scheme": "http", "http.route": "/v1/events",
        "http.response.status_code": 200,
    }  # fmt: skip
    (added,) = exported.spans("zettel.add")
    assert added.parent is not None
    assert added.parent.span_id == request.context.span_id  # type: ignore[union-attr]
    assert exported.spans("POST /v1/search")[0].parent is None
    counts = {
        (point.get("http.route"), point["http.response.status_code"]): value.count
        for point, value in exported.points("http.server.request.duration")
    }
    assert counts["/v1/events", 200] == counts["/v1/notes/{id}", 404] == counts[None, 404] == 1
    for word in (SECRET_WORD, QUESTION_WORD, USER, id, "laptop"):
        assert word not in exported.text()


WITHOUT_SDK = """
import statistics, sys, time
from zettel import Memory
from zettel.core.telemetry import OPERATIONS, observed

def seconds(call):
    times = []
    for _ in range(200):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)

def nothing():
    with observed("zettel.search", OPERATIONS, {"zettel.operation": "search"}) as observation:
        observation.attributes["zettel.count"] = 1

with Memory("a.db") as memory:
    memory.add("Ann sails.")
    memory.flush()
    search = seconds(lambda: memory.search("Who sails?", log=False))
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
print(seconds(nothing) / search)
"""


def test_without_the_programs_sdk_nothing_is_imported_and_a_search_costs_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_SDK]
    share = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert float(share) < 0.01


class Collector(BaseHTTPRequestHandler):
    """Counts the requests of an OTLP exporter by path."""

    paths: set[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.paths.add(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("otel", [True, False])
def test_a_server_exports_by_otlp_only_if_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, otel: bool) -> None:
    class Handler(Collector):
        paths: set[str] = set()  # noqa: RUF012 (one for each server)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as collector:
        thread = Thread(target=collector.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        with serving(tmp_path / "a.db", *(["--otel"] if otel else [])) as (process, url):
            client = Asker(int(url.rpartition(":")[2]))
            assert client("POST", "/v1/events", {"content": "Ann sails."}).status == 200
            client.close()
            process.terminate()
            _, log = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, log
            assert [json.loads(line)["status"] for line in log.splitlines()] == [200]
        collector.shutdown()
        thread.join()
    assert Handler.paths == ({"/v1/traces", "/v1/metrics"} if otel else set())
