"""The protocol between ``zettel bench peers`` and a peer's process, also with peers that misbehave."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import numpy as np
import pytest

from zettel.bench.peers.environments import Peer, prepare
from zettel.bench.peers.process import PeerFailed, PeerProcess, shared_vectors
from zettel.errors import InvalidInput, ZettelError

if TYPE_CHECKING:
    from zettel.ports.query import Floats

BM25 = Path(__file__).parents[1] / "bm25_peer.py"
ITEMS = [{"id": "a", "text": "Ann: The heron nests."}, {"id": "b", "text": "Ben: The ferry is late."}]

Start = Callable[..., PeerProcess]


def lengths(texts: Sequence[str]) -> Floats:
    return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with shared_vectors(lengths) as address:

        def begin(driver: Path | str, timeout: float = 100.0) -> PeerProcess:
            folder = tmp_path / "store"
            folder.mkdir(exist_ok=True)
            if isinstance(driver, str):
                path = tmp_path / "driver.py"
                path.write_text(dedent(driver), encoding="utf-8")
                driver = path
            return PeerProcess(Path(sys.executable), driver, folder, address, tmp_path / "log", timeout)

        yield begin


def searching(body: str) -> str:
    """Return a driver whose ``search`` has this body."""
    return f"""\
import os, sys, time

class Peer:
    def __init__(self, embed):
        self.embed = embed
    def search(self, question, k):
        {body}

def open_peer(folder, embed):
    return Peer(embed)
"""


def test_items_are_added_found_deleted_and_found_by_a_new_process(start: Start) -> None:
    with start(BM25) as peer:
        assert peer.call("add_many", items=ITEMS).seconds > 0
        peer.call("flush")  # optional: this driver has none
        assert peer.search("Where is the heron?", 10)[0] == ["a", "b"]
        assert peer.search("Where is the heron?", 1)[0] == ["a"]
        peer.call("delete", ids=["a"])
        memory = peer.resident_bytes()
        assert memory is None or memory > 1_000_000
        peer.close()
    with start(BM25) as peer:
        assert peer.search("Where is the heron?", 10)[0] == ["b"]


def test_acknowledged_items_of_a_killed_peer_are_found(start: Start) -> None:
    with start(BM25) as peer:
        peer.call("add_many", items=ITEMS)
        peer.kill()
    with start(BM25) as peer:
        assert peer.search("ferry", 10)[0] == ["b"]


def test_the_parent_computes_the_vectors(start: Start) -> None:
    with start(searching("return [str(row) for row in self.embed([question, '']) + self.embed([])]")) as peer:
        assert peer.search("four", 10)[0] == ["[4.0, 1.0]", "[0.0, 1.0]"]


def test_prints_of_a_peer_do_not_mix_with_answers(start: Start) -> None:
    with start(searching("print('hello'); os.write(1, b'hello'); return ['a']")) as peer:
        assert peer.search("x", 10)[0] == ["a"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no such index')", "it ended with status 1: ValueError: no such index"),
        ("raise ValueError('no\\nsuch index')", "it ended with status 1: ValueError: no such index"),
        ("sys.stderr.write('a note\\nout of memory\\n\\n'); os._exit(3)", "it ended with status 3: out of memory"),
        ("os._exit(3)", "it ended with status 3: without a message"),
        ("os.kill(os.getpid(), 9)", "it ended with status -9: without a message"),
        ("return {'a': 1}", "hits that are not a list of ids: {'a': 1}"),
        ("return [1]", "hits that are not a list of ids: [1]"),
        ("os.write(sys._getframe(2).f_locals['answers'].fileno(), b'nonsense\\n')", "an answer that is not understood"),
    ],
)
def test_a_peer_that_misbehaves_fails_with_one_line(start: Start, body: str, reason: str) -> None:
    with start(searching(body)) as peer, pytest.raises(PeerFailed) as failed:
        peer.search("x", 10)
    assert str(failed.value).startswith(reason)
    assert "\n" not in str(failed.value)


def test_the_error_of_an_earlier_process_is_not_reported_again(start: Start) -> None:
    with start(searching("raise ValueError('wrong')")) as peer, pytest.raises(PeerFailed, match="ValueError: wrong"):
        peer.search("x", 10)
    with start(searching("os._exit(3)")) as peer, pytest.raises(PeerFailed, match="status 3: without a message"):
        peer.search("x", 10)


def test_a_peer_that_does_not_answer_fails(start: Start) -> None:
    with start(searching("time.sleep(600)")) as peer:
        peer._timeout = 1.0  # from now on: on a busy machine, the start takes longer
        with pytest.raises(PeerFailed, match="no answer within 1 s"):
            peer.search("x", 10)


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        ("import a_peer_that_is_not_installed", "ModuleNotFoundError"),
        ("open_peer = lambda folder, embed: embed(['x']) + undefined", "NameError"),
        ("def nothing(): pass", "AttributeError"),
    ],
)
def test_a_peer_that_does_not_open_fails_with_the_error(start: Start, driver: str, reason: str) -> None:
    with pytest.raises(PeerFailed, match=reason), start(driver):
        pass


def test_a_peer_cannot_reach_another_machine(start: Start) -> None:
    body = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    with start(searching(body)) as peer, pytest.raises(PeerFailed, match=r"no network in this benchmark: 192\.0\.2\.1"):
        peer.search("x", 10)


def test_a_request_to_a_peer_that_ended_after_its_last_answer_fails(start: Start) -> None:
    body = "import threading; threading.Timer(0.2, os._exit, (3,)).start(); return []"
    with start(searching(body)) as peer:
        assert peer.search("x", 10)[0] == []
        time.sleep(0.5)
        with pytest.raises(PeerFailed, match="it ended with status 3"):
            peer.search("x", 10)


def test_without_uv_no_environment_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(InvalidInput, match="uv is missing"):
        prepare("x", Peer("x", BM25, ("a-package",)), tmp_path)


def test_a_failed_installation_is_one_line_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho warning >&2\necho no such package >&2\nexit 2\n", encoding="utf-8")
    uv.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name, path=None: str(uv))
    for _ in range(2):
        with pytest.raises(ZettelError, match=r"^uv venv failed: no such package$"):
            prepare("x", Peer("x", BM25, ("a-package",)), tmp_path)
