"""The benchmark of peers: zettel beside a small peer of our own, and (slow) beside real ones."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from tests.integration.command import Zettel
from zettel.bench.peers import environments
from zettel.bench.peers import measure as bench
from zettel.bench.peers.environments import PEERS, Peer
from zettel.bench.results import Result

pytestmark = pytest.mark.integration

TESTS = Path(__file__).parents[1]
CHAT = TESTS / "data" / "chats" / "home-server.json"
BM25 = Peer("small", TESTS / "bm25_peer.py")


def rows_of(result: Result) -> dict[str, dict[str, Any]]:
    return {str(row[0]): dict(zip(result.columns, row, strict=True)) for row in result.rows}


@pytest.fixture
def short_chat(tmp_path: Path) -> Path:
    """The first 60 messages of a chat, and the questions that they answer."""
    chat = json.loads(CHAT.read_text(encoding="utf-8"))
    chat["messages"] = chat["messages"][:60]
    ids = {message["id"] for message in chat["messages"]}
    chat["questions"] = [item for item in chat["questions"] if ids.issuperset(item["evidence"])]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat), encoding="utf-8")
    return path


def packed(chat: Path) -> Path:
    """Return a file of one chat in the layout of BEAM's development half: compressed JSON lines."""
    path = chat.with_suffix(".jsonl.gz")
    path.write_bytes(gzip.compress(chat.read_bytes() + b"\n"))
    return path


@pytest.mark.timeout(300)
@pytest.mark.anyio
async def test_zettel_and_a_small_peer_are_measured_alike(
    short_chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('not on this machine')", encoding="utf-8")
    monkeypatch.setattr(bench, "PEERS", {"small": BM25, "broken": Peer("broken", broken)})
    monkeypatch.setattr(bench, "KILLS", 1)
    saved: list[list[Any]] = []
    result = await bench.run(
        [f"beam={packed(short_chat)}"], tmp_path, lambda *_: None, save=lambda so_far: saved.append([*so_far.rows])
    )
    assert saved == [result.rows[: number + 1] for number in range(len(result.rows))]
    rows = rows_of(result)
    ours, small = rows["zettel"], rows["small"]
    assert ours["beam @10"] > rows["BM25"]["beam @10"] > 0.2
    assert small["beam @10"] > 0.2
    for row in (ours, small):
        assert row["remark"] is None
        assert row["survived kill -9"] == "50 of 50"
        assert row["deleted texts in files"] == "0 of 5"
        assert row["p95 ms"] >= row["p50 ms"] > 0
        assert row["adds a second"] > 0
        assert row["disk MB"] > 0
    assert rows["broken"]["remark"] == "beam, home-server: it ended with status 1: RuntimeError: not on this machine"
    assert rows["broken"]["beam @10"] is None
    assert rows["A-MEM"]["remark"].startswith("every note needs a language model")
    assert result.ran_on["beam questions"]
    assert [file.model_dump() for file in result.data] == described(tmp_path / "chat.jsonl.gz")


def test_a_short_chat_is_refused(zettel: Zettel, short_chat: Path, tmp_path: Path) -> None:
    chat = json.loads(short_chat.read_text(encoding="utf-8"))
    chat |= {"messages": chat["messages"][:59], "questions": chat["questions"][:1]}
    short_chat.write_text(json.dumps(chat), encoding="utf-8")
    failed = zettel("bench", "peers", str(short_chat), "--environments", str(tmp_path))
    assert (failed.status, failed.err.count("\n")) == (2, 1)
    assert "has too few messages: the first one needs 60 with different texts" in failed.err


def test_an_unknown_peer_and_a_missing_file_are_named(zettel: Zettel, tmp_path: Path) -> None:
    failed = zettel("bench", "peers", str(CHAT), "--environments", str(tmp_path), "--peer", "memo")
    assert (failed.status, failed.err.count("\n")) == (2, 1)
    assert "unknown peer 'memo': use zettel-texts, chroma, langgraph, mem0, llama-index, txtai" in failed.err
    failed = zettel("bench", "peers", str(CHAT), "--environments", str(tmp_path), "--beside", "bm25,minilm")
    assert (failed.status, failed.err.count("\n")) == (2, 1)
    assert "unknown baseline 'minilm': use bm25, vectors, rrf, amem" in failed.err
    missing = zettel("bench", "peers", "missing.json", "--environments", str(tmp_path))
    assert missing.status == 2
    assert "the file missing.json does not exist" in missing.err
    unusable = zettel("bench", "peers", str(CHAT), "--environments", str(CHAT))
    assert unusable.status == 2
    assert "is a file: name a folder" in unusable.err


def test_the_help_names_every_peer(zettel: Zettel) -> None:
    shown = " ".join(zettel("bench", "peers", "--help").out.split()).replace("- ", "-")  # of a name across lines
    names = shown.partition("Only this peer beside zettel: ")[2].partition("; repeatable")[0].split(", ")
    assert [name.split()[0] for name in names] == list(PEERS)


@pytest.mark.soak_only
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    shutil.which("uv", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin") is None, reason="needs uv"
)
@pytest.mark.anyio
async def test_real_peers_are_installed_and_measured(tmp_path: Path) -> None:
    names = ("chroma", "langgraph", "mem0", "llama-index", "langmem", "cognee")  # txtai needs 6 GB
    rows = rows_of(await bench.run([f"chat={CHAT}"], tmp_path, lambda *_: None, names))
    for name in names:
        row = rows[PEERS[name].name]
        assert row["chat @10"] == pytest.approx(rows["vectors"]["chat @10"], abs=0.05), row["remark"]


def test_every_driver_belongs_to_a_peer() -> None:
    drivers = {path.name for path in environments.DRIVERS.glob("*.py")} - {"__init__.py"}
    assert drivers == {peer.driver.name for peer in (environments.OURS, *PEERS.values())}
