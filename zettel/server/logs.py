"""Request log as JSON lines, and Prometheus metrics; without content, questions, ids or scopes."""

from __future__ import annotations

import json
import logging
import os
import traceback
from datetime import datetime, timezone
from typing import Any

from zettel.server.keys import Key

LOG = logging.getLogger("zettel.server")
METHODS = frozenset({"GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT"})
OTHER = "other"
"""Label of unknown methods and paths, whose number is unbounded."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
"""Seconds: a search takes milliseconds, an import minutes."""


METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of ``prometheus_client``: processes started with it write their metrics into this folder."""


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON. Of an error it writes only class and place: its text may quote content."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        fields = getattr(record, "fields", None)
        line |= {"message": record.getMessage()} if fields is None else fields
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            last = traceback.extract_tb(error.__traceback__)[-1:]
            line["error"] = type(error).__name__
            line["at"] = "".join(f"{frame.filename}:{frame.lineno}" for frame in last)
        return json.dumps(line, ensure_ascii=False)


class Metrics:
    """Requests by method, route and status, and how long they took, for Prometheus."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess

        self._registry = self._shown = CollectorRegistry()
        if METRICS_FOLDER in os.environ:
            self._shown = CollectorRegistry()
            multiprocess.MultiProcessCollector(self._shown)  # reads the files of all processes
        labels = ("method", "route")
        self._requests = Counter(
            "zettel_http_requests", "Requests answered.", (*labels, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "zettel_http_request_seconds", "From a request's head to the end of its answer.", labels,
            registry=self._registry, buckets=BUCKETS,
        )  # fmt: skip
        self.active = Gauge(
            "zettel_http_requests_active", "Requests being answered.", registry=self._registry,
            multiprocess_mode="livesum",
        )  # fmt: skip

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; status 0: the client disconnected."""
        self._requests.labels(method, route, str(status) if status else "gone").inc()
        self._seconds.labels(method, route).observe(seconds)

    def page(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        from prometheus_client import generate_latest

        page: bytes = generate_latest(self._shown)
        return page


def forget_process(pid: int | None) -> None:
    """Remove the requests that a process of ``METRICS_FOLDER`` was answering when it ended."""
    from prometheus_client import multiprocess

    if pid is not None:
        multiprocess.mark_process_dead(pid)


def log_request(metrics: Metrics, method: str, route: str | None, status: int, seconds: float, key: Key | None) -> None:
    """Count and log an answer."""
    method, route = method if method in METHODS else OTHER, route or OTHER
    metrics.count(method, route, status, seconds)
    if LOG.isEnabledFor(logging.INFO):
        fields = {
            "method": method, "route": route, "status": status or "gone", "ms": round(seconds * 1000, 1),
            "key": None if key is None else key.name,
        }  # fmt: skip
        LOG.info("request", extra={"fields": fields})
