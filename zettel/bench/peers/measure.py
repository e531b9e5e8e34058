"""Peers beside zettel in one run: recall, speed, size, and what remains after ``kill -9`` and after a delete.

Each conversation is a store of its own, in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.bench import ablation
from zettel.bench.baselines import Baseline, CachingEmbedder, amem, bm25, fused, indexed_text, vectors
from zettel.bench.evaluation import BATCH, Collection, Progress
from zettel.bench.metrics import QuestionResult, summarize
from zettel.bench.results import Cell, Result, data_files
from zettel.bench.timing import percentiles
from zettel.embed.onnx import OnnxEmbedder
from zettel.errors import InvalidInput, ZettelError

from .environments import NOT_MEASURED, OURS, PEERS, Environment, Peer, prepare
from .process import PeerFailed, PeerProcess, shared_vectors

if TYPE_CHECKING:
    from zettel.ports.query import Floats

K = 10
BASELINES = ("bm25", "vectors", "rrf", "amem")
POINTS = (50, 95)
KILLS, ACKNOWLEDGED, KILL_BATCH = 3, 50, 10
"""Rounds with ``kill -9``; items acknowledged before each, in batches; the process is killed in the next batch."""
REMAINING, DELETED = 50, 5
"""Items that stay and items that are deleted."""
SECRET = "qzvx{}kwj"
"""Word in a deleted text that no other text contains."""
MEGABYTE = 1e6

Start = Callable[[Path], AbstractContextManager[PeerProcess]]
"""Opens a peer in a folder."""


class Measured(NamedTuple):
    """Results by data; seconds of the import and of each search; bytes on disk, and the largest memory."""

    results: dict[str, list[QuestionResult]]
    items: int
    import_seconds: float
    seconds: list[float]
    disk: int
    memory: int


async def run(
    specs: Sequence[str],
    folder: Path,
    progress: Progress,
    names: Sequence[str] = (),
    baselines: Sequence[str] = BASELINES,
    save: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Measure zettel, the peers ``names`` (default: all) and ``baselines`` on the same texts, questions and vectors.

    ``specs`` are ``PATH`` or ``NAME=PATH[,PATH…]`` each, as for ``ablation.read``. ``folder`` contains the peers'
    environments; missing ones are made. A peer that cannot be installed or fails has a row with the reason. ``save``
    gets the result so far after each system.

    Raises ``InvalidInput`` for an unknown peer or baseline, too short data, without uv, and for the errors of
    ``ablation.read``; ``BadRecord``.
    """
    data = ablation.read([spec if "=" in spec else f"{Path(spec).stem}={spec}" for spec in specs])
    if unknown := sorted(set(names) - set(PEERS)):
        raise InvalidInput(f"unknown peer {unknown[0]!r}: use {', '.join(PEERS)}")
    if unknown := sorted(set(baselines) - set(BASELINES)):
        raise InvalidInput(f"unknown baseline {unknown[0]!r}: use {', '.join(BASELINES)}")
    _require_texts(data[0].collections[0])
    embedder = OnnxEmbedder()
    cached = CachingEmbedder(embedder)
    texts = _texts(data)
    progress("embedding", 0, len(texts))
    began = time.perf_counter()
    known = dict(zip(texts, await cached.embed(texts), strict=True))
    rate = len(texts) / (time.perf_counter() - began)

    def encode(wanted: Sequence[str]) -> Floats:
        new = [text for text in wanted if text not in known]
        computed = dict(zip(new, embedder.encode(new), strict=True)) if new else {}
        return np.stack([known[text] if text in known else computed[text] for text in wanted])

    counts = {f"{each.name} questions": sum(len(one.questions) for one in each.collections) for each in data}
    result = Result(
        bench="peers",
        data=data_files(file for each in data for file in each.files),
        ran_on={**counts},
        settings={
            "k": K,
            "embedder": f"{embedder.info.name} ({embedder.info.dim}, {embedder.info.fingerprint[:12]})",
        },
        columns=[
            "system", "version", *(f"{each.name} @{K}" for each in data), "adds a second",
            *(f"p{point} ms" for point in POINTS), "disk MB", "memory MB", "survived kill -9",
            "deleted texts in files", "remark",
        ],
        rows=[],
        notes=[
            f"Recall in the first {K} places. All systems get the same texts and questions, and vectors from the same "
            "process, computed beforehand: rates, times and memory are without the model, which embeds "
            f"{rate:.0f} of these texts a second here.",
            f"{KILLS} times, the process was killed in a batch after {ACKNOWLEDGED} acknowledged items; then a new one "
            f"flushed and searched for each. {DELETED} of {REMAINING + DELETED} texts were deleted; after closing, the "
            "store's files were searched for a word of each.",
        ],
    )  # fmt: skip
    unmeasured = len(result.columns) - 3

    def add(row: list[Cell]) -> None:
        result.rows.append(row)
        save(result)

    with shared_vectors(encode) as address:
        chosen = {"zettel": OURS} | {key: PEERS[key] for key in names or PEERS}
        for key, peer in chosen.items():
            progress(f"preparing {peer.name}", 0, 1)
            version = None
            try:
                environment = prepare(key, peer, folder)
                version = environment.version
                row = _measured_row(peer, environment, address, data, progress)
            except InvalidInput:
                raise
            except ZettelError as error:
                row = [peer.name, version, *[None] * unmeasured, str(error)]
            add(row)
    if not names:
        for name, reason in NOT_MEASURED.items():
            add([name, None, *[None] * unmeasured, reason])
    flat = vectors(cached)
    systems: dict[str, tuple[str, Baseline]] = {
        "bm25": ("BM25", bm25), "vectors": ("vectors", flat), "rrf": ("RRF", fused(bm25, flat)),
        "amem": ("A-MEM search", amem(cached)),
    }  # fmt: skip
    for name, baseline in (systems[key] for key in baselines):
        progress(f"ranking by {name}", 0, 1)
        recalls = [await _baseline_recall(baseline, each.collections) for each in data]
        add([name, None, *recalls, *[None] * (unmeasured - len(data)), "search alone, in zettel's process"])
    return result


def _require_texts(collection: Collection) -> None:
    needed = max(ACKNOWLEDGED + KILL_BATCH, REMAINING + DELETED)
    if len({indexed_text(event) for event in collection.events}) < needed:
        raise InvalidInput(f"{collection.name} has too few messages: the first one needs {needed} with different texts")


def _texts(data: Sequence[ablation.Data]) -> list[str]:
    """Return the different texts and questions of all data."""
    every = [collection for each in data for collection in each.collections]
    texts = [indexed_text(event) for collection in every for event in collection.events]
    return list(dict.fromkeys([*texts, *(question.text for collection in every for question in collection.questions)]))


def _measured_row(
    peer: Peer, environment: Environment, address: str, data: Sequence[ablation.Data], progress: Progress
) -> list[Cell]:
    with TemporaryDirectory(prefix="zettel-peer-") as temporary:
        log = Path(temporary) / "log"

        def start(folder: Path) -> PeerProcess:
            folder.mkdir(exist_ok=True)
            return PeerProcess(environment.python, peer.driver, folder, address, log)

        measured = _measure(peer, start, Path(temporary), data, progress)
        items = _items(peer, data[0].collections[0])
        distinct = list({item["text"]: item for item in items}.values())
        progress(f"killing {peer.name}", 0, KILLS)
        survivors, remarks = survival(start, Path(temporary), distinct)
        progress(f"deleting in {peer.name}", 0, 1)
        remains = remaining(start, Path(temporary) / "deleted", distinct)
    recalls: list[Cell] = [round(summarize(results, K).recall, 4) for results in measured.results.values()]
    return [
        peer.name,
        environment.version,
        *recalls,
        round(measured.items / measured.import_seconds, 1),
        *percentiles(measured.seconds, POINTS),
        round(measured.disk / MEGABYTE, 2),
        round(measured.memory / MEGABYTE, 1),
        survivors,
        remains,
        "; ".join(remarks) or None,
    ]


def _measure(peer: Peer, start: Start, temporary: Path, data: Sequence[ablation.Data], progress: Progress) -> Measured:
    results: dict[str, list[QuestionResult]] = {each.name: [] for each in data}
    seconds: list[float] = []
    items = disk = memory = 0
    importing = 0.0
    every = [(each.name, collection) for each in data for collection in each.collections]
    for number, (name, collection) in enumerate(every):
        progress(f"measuring {peer.name}", number, len(every))
        folder = temporary / str(number)
        try:
            with start(folder) as process:
                for batch in _batches(_items(peer, collection), BATCH):
                    importing += process.call("add_many", items=batch).seconds
                importing += process.call("flush").seconds
                for question in collection.questions:
                    found, spent = process.search(question.text, K)
                    seconds.append(spent)
                    results[name].append(QuestionResult(question.group, question.needed, [[id] for id in found]))
                memory = max(memory, process.resident_bytes() or 0)
                process.close()
        except PeerFailed as error:
            raise PeerFailed(f"{name}, {collection.name}: {error}") from error
        items += len(collection.events)
        disk += sum(file.stat().st_size for file in _files(folder))
    return Measured(results, items, importing, seconds, disk, memory)


def survival(start: Start, temporary: Path, items: Sequence[dict[str, Any]]) -> tuple[str, list[str]]:
    """Kill a peer in the middle of a batch, KILLS times, each in a new folder; ``items`` have different texts.

    Returns how many acknowledged items a new process finds by their texts, and the errors of new processes.
    """
    acknowledged, later = items[:ACKNOWLEDGED], items[ACKNOWLEDGED : ACKNOWLEDGED + KILL_BATCH]
    found, errors = 0, []
    for number in range(KILLS):
        folder = temporary / f"killed {number}"
        with start(folder) as process:
            spent = [process.call("add_many", items=batch).seconds for batch in _batches(acknowledged, KILL_BATCH)]
            process.send("add_many", items=later)
            time.sleep(spent[-1] * (number + 1) / (KILLS + 1))
            process.kill()
        try:
            with start(folder) as process:
                process.call("flush")  # an item whose vector is missing survived, but may not be found
                found += sum(item["id"] in process.search(item["text"], K)[0] for item in acknowledged)
        except PeerFailed as error:
            errors.append(f"after a kill: {error}")
    return f"{found} of {KILLS * len(acknowledged)}", list(dict.fromkeys(errors))


def remaining(start: Start, folder: Path, items: Sequence[dict[str, Any]]) -> str:
    """Delete DELETED texts, close, and count those of which a word is left in the files. Raises ``PeerFailed``."""
    secrets = [SECRET.format(number) for number in range(DELETED)]
    questions = [item["text"] for item in items[REMAINING : REMAINING + DELETED]]
    deleted = [{"id": secret, "text": f"{text} {secret}"} for secret, text in zip(secrets, questions, strict=True)]
    with start(folder) as process:
        process.call("add_many", items=[*items[:REMAINING], *deleted])
        process.call("flush")
        process.call("delete", ids=[item["id"] for item in deleted])
        process.call("flush")
        still = sum(id in process.search(text, K)[0] for id, text in zip(secrets, questions, strict=True))
        process.close()
    contents = [file.read_bytes() for file in _files(folder)]
    left = sum(any(f" {secret}".encode() in content for content in contents) for secret in secrets)
    return f"{left} of {len(deleted)}" + (f", {still} still found" if still else "")


async def _baseline_recall(baseline: Baseline, collections: Sequence[Collection]) -> float:
    results = []
    for each in collections:
        ranks = await baseline(each.events, [question.text for question in each.questions], K)
        for question, places in zip(each.questions, ranks, strict=True):
            hits = [[str(each.events[place].external_id)] for place in places]
            results.append(QuestionResult(question.group, question.needed, hits))
    return round(summarize(results, K).recall, 4)


def _items(peer: Peer, collection: Collection) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for event in collection.events:
        item: dict[str, Any] = {"id": str(event.external_id), "text": indexed_text(event)}
        if peer.events:
            item["event"] = event.model_dump(mode="json", exclude_none=True)
        items.append(item)
    return items


def _batches(items: Sequence[dict[str, Any]], size: int) -> Iterator[Sequence[dict[str, Any]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]
