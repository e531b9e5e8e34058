"""Times that encryption, the audit log, webhooks and a search of several scopes add to a call.

Memories with and without a feature are open at once and take turns with each message and question, so that other load
meets all of them alike.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from zettel import Event, Memory, Scope
from zettel.embed import load_embedder
from zettel.local.webhook_targets import new_secret
from zettel.ports import Embedder

from .evaluation import Progress, run_settings
from .results import Cell, Result
from .timing import MILLISECONDS, percentiles
from .zipf import SEED, VERSION, ZipfScope

FILLED = 1_000
"""Messages in each memory before the calls are timed."""
CALLS, CALLS_BEFORE = 300, 30
"""Timed calls of each kind, and those before them."""
BATCH, BATCHES = 100, 20
OPENINGS = 5
SCOPES, NOTES = 5, 10_000
"""Scopes that are searched at once, and messages in all of them."""
K = 10
PLAIN, FEATURES = "plain", ("encryption", "audit log", "webhooks")


def run(progress: Progress, embedder: str | None = None, notes: int = NOTES) -> Result:
    """Measure each feature beside a memory without it, and scopes with ``notes`` in all beside one scope.

    Raises ``MissingExtra`` without SQLCipher.
    """
    model = load_embedder(embedder)
    with TemporaryDirectory(prefix="zettel-bench-") as temporary, _receiver() as url:
        folder = Path(temporary)
        options = _options(folder, url)
        seconds = _calls(folder, options, model, progress)
        opening = _openings(folder, options, model, progress)
        apart, together = _scope_searches(folder, model, notes, progress)
    rows: list[list[Cell]] = []
    for feature in FEATURES:
        rows += [
            _row(f"{feature}: {call}", of_call[feature], of_call[PLAIN], "ms") for call, of_call in seconds.items()
        ]
    rows.append(_row("encryption: open", opening["encryption"], opening[PLAIN], "ms"))
    rows.append(_row(f"search of {SCOPES} scopes", apart, together, "ms"))
    return Result(
        bench="features",
        data=[],
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "notes": FILLED, "notes in scopes": notes},
        settings=run_settings(None, (), model, K),
        columns=["p50", "with", "without", "ratio", "difference", "unit"],
        rows=rows,
        notes=[
            f"{CALLS} calls of each kind after {CALLS_BEFORE} that are not counted, in memories of {FILLED:,} messages "
            f"that take turns; add_many: {BATCHES} batches of {BATCH} messages. The difference is the median of that "
            "of each turn.",
            "The receiver of webhooks is in this process.",
            f"Scopes: {SCOPES} scopes with {notes:,} messages in all, beside one scope with all of them.",
        ],
    )


def _options(folder: Path, url: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of ``Memory`` for each feature."""
    webhooks = folder / "webhooks.yaml"
    target = {"url": url, "secret": new_secret(), "private": True}
    webhooks.write_text(json.dumps({"targets": {"bench": target}}), encoding="utf-8")  # JSON is YAML
    webhooks.chmod(0o600)
    return {
        PLAIN: {},
        "encryption": {"key": secrets.token_urlsafe(24)},
        "audit log": {"audit": folder / "audit.jsonl"},
        "webhooks": {"webhooks": webhooks},
    }


def _calls(
    folder: Path, options: Mapping[str, dict[str, Any]], model: Embedder, progress: Progress
) -> dict[str, dict[str, list[float]]]:
    """Return seconds by kind of call and by feature."""
    scope = ZipfScope(FILLED + CALLS_BEFORE + CALLS + BATCH * BATCHES)
    events = iter(scope)
    filling = list(islice(events, FILLED))
    single = list(islice(events, CALLS_BEFORE + CALLS))
    batches = [list(islice(events, BATCH)) for _ in range(BATCHES)]
    questions = [question.text for question in scope.questions(CALLS_BEFORE + CALLS)]
    with ExitStack() as stack:
        memories = {
            name: stack.enter_context(Memory(folder / f"{name}.db", embedder=model, **chosen))
            for name, chosen in options.items()
        }
        for place, memory in enumerate(memories.values()):
            progress("importing", place, len(memories))
            memory.add_many(filling)
            memory.flush()

        def add(memory: Memory, event: Event) -> None:
            memory.add_many([event])

        def search(memory: Memory, question: str) -> None:
            memory.search(question, k=K)

        progress("calling", 0, 3)
        adds = _turns(memories, add, single)
        progress("calling", 1, 3)
        many = _turns(memories, Memory.add_many, batches)
        progress("calling", 2, 3)
        searches = _turns(memories, search, questions)
    return {
        "add": {name: seconds[CALLS_BEFORE:] for name, seconds in adds.items()},
        "add_many": many,
        "search": {name: seconds[CALLS_BEFORE:] for name, seconds in searches.items()},
    }


def _turns(
    memories: Mapping[str, Memory], call: Callable[[Memory, Any], object], arguments: Sequence[Any]
) -> dict[str, list[float]]:
    """Call each memory with each argument, in another order each time; background jobs end before the next turn."""
    names = list(memories)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn, argument in enumerate(arguments):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            began = time.perf_counter()
            call(memories[name], argument)
            seconds[name].append(time.perf_counter() - began)
            memories[name].flush()
    return seconds


def _openings(
    folder: Path, options: Mapping[str, dict[str, Any]], model: Embedder, progress: Progress
) -> dict[str, list[float]]:
    """Return the seconds of opening an encrypted store and a plain one."""
    seconds: dict[str, list[float]] = {"encryption": [], PLAIN: []}
    for turn in range(OPENINGS):
        progress("opening", turn, OPENINGS)
        for name, spent in seconds.items():
            began = time.perf_counter()
            with Memory(folder / f"{name}.db", embedder=model, **options[name]):
                spent.append(time.perf_counter() - began)
    return seconds


def _scope_searches(
    folder: Path, model: Embedder, notes: int, progress: Progress
) -> tuple[list[float], list[float]]:
    """Return seconds of searches in several scopes, and in one scope with all messages."""
    made = ZipfScope(notes)
    questions = [question.text for question in made.questions(CALLS_BEFORE + CALLS)]
    scopes = [Scope(user=f"part {number}") for number in range(SCOPES)]
    whole = Scope(user="whole")
    apart: list[float] = []
    together: list[float] = []
    with Memory(folder / "scopes.db", embedder=model) as memory:
        messages = list(made)
        for number, scope in enumerate(scopes):
            progress("importing scopes", number, SCOPES + 1)
            memory.add_many(messages[number::SCOPES], scope=scope)
        progress("importing scopes", SCOPES, SCOPES + 1)
        memory.add_many(messages, scope=whole)
        memory.flush()
        progress("asking scopes", 0, 1)
        for question in questions:
            for spent, chosen in ((apart, scopes), (together, [whole])):
                began = time.perf_counter()
                memory.search(question, k=K, scopes=chosen)
                spent.append(time.perf_counter() - began)
    return apart[CALLS_BEFORE:], together[CALLS_BEFORE:]


def _row(name: str, with_feature: Sequence[float], without: Sequence[float], unit: str) -> list[Cell]:
    ours, plain = (percentiles(side, (50,))[0] for side in (with_feature, without))
    difference = median(one - other for one, other in zip(with_feature, without, strict=True)) * MILLISECONDS
    return [name, ours, plain, round(ours / plain, 2), round(difference, 2), unit]


class _Accepting(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _receiver() -> Iterator[str]:
    """Accept webhooks on a free port; yield the address."""
    with HTTPServer(("127.0.0.1", 0), _Accepting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
