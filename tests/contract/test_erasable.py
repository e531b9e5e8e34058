"""Erasable: `delete` destroys what was asked for and what came from it, down to the bytes of the store's files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import neo4j_servers
from tests.contract.support import LIFE, decide, keep_answer, picture, said
from zettel import AsyncMemory, LinkType, Memory, Scope
from zettel.errors import InvalidInput, NotFound
from zettel.text.tokens import tokenize

ROOT = Path(__file__).parents[2]
SECRETS = ("Quixoticville", "Žďárskýštěp", "秘密計画")


def forms(word: str) -> set[bytes]:
    """Every way a word may be left behind: as written, folded, stemmed, escaped, in two encodings."""
    spellings = {word, word.casefold(), word.upper(), *(token for token in tokenize(word) if len(token) > 3)}
    escaped = {json.dumps(text)[1:-1] for text in spellings} | {
        text.encode("unicode_escape").decode() for text in spellings
    }
    return {text.encode() for text in spellings | escaped} | {text.encode("utf-16-le") for text in spellings}


@pytest.fixture
def traces(url: Any, tmp_path: Path) -> Callable[..., list[str]]:
    """Where the store of ``url`` holds one of some words in any form: in its files, or in any property in a server."""
    server = getattr(url, "server", None)
    if server is None:
        return lambda *words: [trace for word in words for trace in in_files(tmp_path, word)]
    return lambda *words: in_database(server, *words)


def in_files(folder: Path, word: str) -> list[str]:
    """Files of a folder that hold a word in any form."""
    sought = forms(word)
    return [
        f"{file.name}: {form!r}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        for form in sought
        if form in file.read_bytes()
    ]


def in_database(server: neo4j_servers.Server, *words: str) -> list[str]:
    """Properties of nodes and relationships that hold one of the words in any form."""
    sought = set().union(*map(forms, words))
    return [
        f"{name}: {form!r}"
        for name, texts in neo4j_servers.properties(server).items()
        for kept in ("\0".join(texts).encode(), "\0".join(texts).encode("utf-16-le"))
        for form in sought
        if form in kept
    ]


def a_life_with_secrets(memory: Memory) -> list[str]:
    memory.add_many(LIFE)
    memory.add_many([{"id": f"filler {n}", "content": f"Filler number {n} about bread and boats."} for n in range(300)])
    ids = [
        memory.add(f"I once lived in {word}, near {word} Square.", title=f"{word} notes", speaker=word, session=word,
                   source=f"{word}.txt", payload={word: word}, metadata={word: word}, id=word,
                   occurred_at="2024-02-02")
        for word in SECRETS
    ]  # fmt: skip
    memory.flush()
    return ids


@pytest.mark.parametrize("way", ["id", "event", "session", "source", "scope"])
def test_no_byte_of_a_deleted_word_stays(url: Any, traces: Callable[..., list[str]], way: str) -> None:
    with Memory(url) as memory:
        ids = a_life_with_secrets(memory)
        memory.search(f"Where is {SECRETS[0]}?")
        memory.update(ids[0], keywords=[SECRETS[0], "place"])
        for id, word in zip(ids, SECRETS, strict=True):
            keep_answer(memory, f"key {id}", f"Somebody lived in {word}.", id, memory.list(limit=1).notes[0].id)
        memory.flush()
        assert all(traces(word) for word in SECRETS)
        for id, word in zip(ids, SECRETS, strict=True):
            if way == "id":
                assert memory.delete(id) == 1
            elif way == "event":
                memory.delete(memory.get(id).event_ids[0])
            elif way != "scope":
                assert memory.delete(**{way: word if way == "session" else f"{word}.txt"}) == 1
        if way == "scope":
            assert memory.delete_scope() == 310
        memory.flush(timeout=60)
        assert traces(*SECRETS) == []
        assert memory.check() == []
        assert len(said(memory, "Kestrel the dog", k=3)) == (0 if way == "scope" else 3)
    assert traces(*SECRETS) == []


def test_a_session_may_be_deleted_twice_at_once(memory: Memory) -> None:
    memory.add_many([{"content": f"Crate {n} is full.", "session": "s"} for n in range(20)])

    async def thrice(inner: AsyncMemory) -> list[int]:
        return await asyncio.gather(*(inner.delete(session="s") for _ in range(3)))

    gone = memory._bridge.call(partial(thrice, memory._bridge.inner))
    assert sorted(gone) == [0, 0, 20]
    assert memory.list().notes == ()


def test_a_process_that_reads_meanwhile_only_delays_the_purge(url: Any, traces: Callable[..., list[str]]) -> None:
    code = (
        "import sys; from zettel import Memory; m = Memory(sys.argv[1]); "
        "print(len(m.search('bread and boats')), flush=True);"
        "[m.search('bread and boats') for _ in iter(sys.stdin.readline, '')]; m.close()"
    )
    with Memory(url) as memory:
        ids = a_life_with_secrets(memory)
        with subprocess.Popen(
            [sys.executable, "-c", code, str(url)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            assert reader.stdout.readline() == "10\n"
            for id in ids:
                reader.stdin.write("again\n")
                reader.stdin.flush()
                memory.delete(id)
            memory.flush(timeout=60)
            assert traces(*SECRETS) == []
            reader.stdin.close()
            assert reader.wait(30) == 0


def test_delete_takes_all_parts_and_leaves_the_rest(memory: Memory) -> None:
    memory.add_many(LIFE)
    memory.flush()
    before = picture(memory)
    long = memory.add(" ".join(f"Part and parcel {n} of the long report." for n in range(120)), id="long")
    memory.flush()
    parts = memory.get(long).parts
    assert parts >= 3
    assert memory.delete(long) == parts
    memory.flush()
    assert picture(memory) == before


def test_what_was_decided_on_a_deleted_note_is_taken_back(memory: Memory) -> None:
    source = memory.add("The vault is behind the painting.")
    derived = memory.add("The safe place is known.")
    heard = memory.add("We spoke about painting.")
    memory.flush()
    decide(memory, derived, source, LinkType.DERIVED_FROM)
    decide(memory, heard, source, LinkType.RELATES)
    before = memory.get(heard).version
    assert memory.delete(source) == 2
    with pytest.raises(NotFound):
        memory.get(derived)
    assert memory.links(heard) == []
    assert memory.get(heard).version > before
    assert [r.cause.by for r in memory.history(heard) if source in str(r)] == []


def test_what_once_came_from_a_file_or_a_session_goes_with_it(url: Any, traces: Callable[..., list[str]]) -> None:
    with Memory(url) as memory:
        kept = memory.add("Bread and boats.", session="new", source="new.txt")
        for way in ("source", "session"):
            memory.add(f"I lived in {SECRETS[0]}.", id=way, session="old", source="old.txt")
            memory.add("I lived elsewhere.", id=way, session="new", source="new.txt", on_conflict="revise")
        assert memory.delete(source="old.txt") == 2
        memory.flush(timeout=60)
        assert memory.delete(session="old") == 0
        assert [note.id for note in memory.list().notes] == [kept]
        assert traces(SECRETS[0]) == []


def test_an_event_goes_with_its_note_whatever_that_was_called_since(memory: Memory) -> None:
    id = memory.add("The vault is behind the painting.")
    (event,) = memory.get(id).event_ids
    memory.update(id, kind="semantic")
    assert memory.delete(id) == 1
    with pytest.raises(NotFound):
        memory.get(event)


@pytest.mark.parametrize("away", [Memory.delete, Memory.archive])
def test_who_no_longer_says_anything_is_no_speaker_any_more(memory: Memory, away: Callable[..., Any]) -> None:
    """A speaker's name in a question counts as who is asked about; of others it is a word like any other."""
    others = [
        {"content": "Cara lives in Rome.", "speaker": "Ben"},
        {"content": "Ann lives in Oslo.", "speaker": "Ben"},
        {"content": "Ann saw the ferry.", "speaker": "Cara"},
    ]
    never, since = Scope(user="never"), Scope(user="since")

    def scores(scope: Scope) -> list[tuple[str, float]]:
        hits = memory.search("Where does Ann live?", scope=scope, restore_decayed=False)
        return [(hit.note.content, round(hit.score, 6)) for hit in hits]

    for scope in (never, since):
        memory.add_many(others, scope=scope)
    id = memory.add("The kiln is cold.", speaker="Ann", scope=since)
    memory.flush()
    assert scores(since) != scores(never)
    away(memory, id, scope=since)
    memory.flush()
    assert scores(since) == scores(never)


def test_a_wrong_delete_destroys_nothing(memory: Memory) -> None:
    memory.add_many(LIFE, wait=True)
    before = picture(memory)
    with pytest.raises(NotFound, match="n_nothing"):
        memory.delete("n_nothing")
    with pytest.raises(NotFound, match="e_nothing"):
        memory.delete("e_nothing")
    with pytest.raises(InvalidInput, match="exactly one of"):
        memory.delete()
    with pytest.raises(InvalidInput, match="exactly one of"):
        memory.delete("n_1", session="a")
    assert memory.delete(session="no such session") == 0
    assert picture(memory) == before
