"""Erasure: `delete` destroys notes and everything derived from them, down to the bytes of the store's files."""

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
from tests.contract.support import LIFE, cache_answer, decide, picture, search_texts
from zettel import AsyncMemory, LinkType, Memory, Scope
from zettel.errors import InvalidInput, NotFound
from zettel.text.tokens import tokenize

ROOT = Path(__file__).parents[2]
SECRETS = ("Quixoticville", "Žďárskýštěp", "秘密計画")


def forms(word: str) -> set[bytes]:
    """Return all forms of a word to look for: as written, folded, stemmed, escaped, in two encodings."""
    spellings = {word, word.casefold(), word.upper(), *(token for token in tokenize(word) if len(token) > 3)}
    escaped = {json.dumps(text)[1:-1] for text in spellings} | {
        text.encode("unicode_escape").decode() for text in spellings
    }
    return {text.encode() for text in spellings | escaped} | {text.encode("utf-16-le") for text in spellings}


@pytest.fixture
def traces(url: Any, tmp_path: Path) -> Callable[..., list[str]]:
    """Return the places where a store contains a word in any form: its files, or the properties on its server."""
    server = getattr(url, "server", None)
    if server is None:
        return lambda *words: [trace for word in words for trace in in_files(tmp_path, word)]
    return lambda *words: in_database(server, *words)


def in_files(folder: Path, word: str) -> list[str]:
    """Return the files of a folder that contain a word in any form."""
    word_forms = forms(word)
    return [
        f"{file.name}: {form!r}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        for form in word_forms
        if form in file.read_bytes()
    ]


def in_database(server: neo4j_servers.Server, *words: str) -> list[str]:
    """Return the properties of nodes and relationships that contain one of the words in any form."""
    word_forms = set().union(*map(forms, words))
    return [
        f"{name}: {form!r}"
        for name, texts in neo4j_servers.properties(server).items()
        for encoded in ("\0".join(texts).encode(), "\0".join(texts).encode("utf-16-le"))
        for form in word_forms
        if form in encoded
    ]


def add_secrets(memory: Memory) -> list[str]:
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
def test_a_deleted_word_leaves_no_byte(url: Any, traces: Callable[..., list[str]], way: str) -> None:
    with Memory(url) as memory:
        ids = add_secrets(memory)
        memory.search(f"Where is {SECRETS[0]}?")
        memory.update(ids[0], keywords=[SECRETS[0], "place"])
        for id, word in zip(ids, SECRETS, strict=True):
            cache_answer(memory, f"key {id}", f"Somebody lived in {word}.", id, memory.list(limit=1).notes[0].id)
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
        assert len(search_texts(memory, "Kestrel the dog", k=3)) == (0 if way == "scope" else 3)
    assert traces(*SECRETS) == []


def test_a_session_can_be_deleted_concurrently(memory: Memory) -> None:
    memory.add_many([{"content": f"Crate {n} is full.", "session": "s"} for n in range(20)])

    async def delete_three_times(inner: AsyncMemory) -> list[int]:
        return await asyncio.gather(*(inner.delete(session="s") for _ in range(3)))

    deleted = memory._bridge.call(partial(delete_three_times, memory._bridge.inner))
    assert sorted(deleted) == [0, 0, 20]
    assert memory.list().notes == ()


def test_a_reading_process_only_delays_the_purge(url: Any, traces: Callable[..., list[str]]) -> None:
    code = (
        "import sys; from zettel import Memory; m = Memory(sys.argv[1]); "
        "print(len(m.search('bread and boats')), flush=True);"
        "[m.search('bread and boats') for _ in iter(sys.stdin.readline, '')]; m.close()"
    )
    with Memory(url) as memory:
        ids = add_secrets(memory)
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


def test_delete_removes_all_parts_and_nothing_else(memory: Memory) -> None:
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


def test_decisions_based_on_a_deleted_note_are_reverted(memory: Memory) -> None:
    source = memory.add("The vault is behind the painting.")
    derived = memory.add("The safe place is known.")
    target = memory.add("We spoke about painting.")
    memory.flush()
    decide(memory, derived, source, LinkType.DERIVED_FROM)
    decide(memory, target, source, LinkType.RELATES)
    before = memory.get(target).version
    assert memory.delete(source) == 2
    with pytest.raises(NotFound):
        memory.get(derived)
    assert memory.links(target) == []
    assert memory.get(target).version > before
    assert [r.cause.by for r in memory.history(target) if source in str(r)] == []


def test_delete_matches_former_sources_and_sessions(url: Any, traces: Callable[..., list[str]]) -> None:
    with Memory(url) as memory:
        unrelated = memory.add("Bread and boats.", session="new", source="new.txt")
        for field in ("source", "session"):
            memory.add(f"I lived in {SECRETS[0]}.", id=field, session="old", source="old.txt")
            memory.add("I lived elsewhere.", id=field, session="new", source="new.txt", on_conflict="revise")
        assert memory.delete(source="old.txt") == 2
        memory.flush(timeout=60)
        assert memory.delete(session="old") == 0
        assert [note.id for note in memory.list().notes] == [unrelated]
        assert traces(SECRETS[0]) == []


def test_a_renamed_note_is_deleted_with_its_event(memory: Memory) -> None:
    id = memory.add("The vault is behind the painting.")
    (event,) = memory.get(id).event_ids
    memory.update(id, kind="semantic")
    assert memory.delete(id) == 1
    with pytest.raises(NotFound):
        memory.get(event)


@pytest.mark.parametrize("remove", [Memory.delete, Memory.archive])
def test_a_person_without_notes_is_not_a_speaker(memory: Memory, remove: Callable[..., Any]) -> None:
    """Only names of current speakers select notes by speaker; any other name is an ordinary word."""
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
    remove(memory, id, scope=since)
    memory.flush()
    assert scores(since) == scores(never)


def test_an_invalid_delete_destroys_nothing(memory: Memory) -> None:
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
