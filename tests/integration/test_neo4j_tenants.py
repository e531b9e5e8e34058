"""Thousands of scopes in one Neo4j, with unusual names and texts: each finds its own notes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import neo4j_servers
from tests.contract.support import picture, search_texts
from tests.neo4j_servers import DATABASE, Server
from zettel import Memory, Scope
from zettel.errors import InvalidEvent
from zettel.graph.neo4j import scope_cache, spaces

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

THREADS = 4
"""Threads with a shared memory."""


@pytest.fixture
def memory(server: Server) -> Iterator[Memory]:
    with Memory(server.url, auth=server.auth) as instance:
        yield instance


# ---------------------------------------------------------------------------------------------------- many of them

EVENTS = [
    f"{subject} {verb} {place}."
    for subject, verb, place in zip(
        ("Ann", "Bob", "Ida", "Kestrel the dog", "The cellist", "A neighbour", "Ann", "Bob", "Ida", "The ferry"),
        ("lost a key in", "baked bread above", "measured ice on", "howled at", "practised in", "painted", "left",
         "sang in", "slept through", "waited for"),
        ("the harbour", "the bakery", "the glacier", "the moon", "the attic", "the gate", "Oslo", "the choir",
         "the storm", "the tide"),
        strict=True,
    )
]  # fmt: skip
"""The events of every scope: equal, so that notes of other scopes match every question equally well."""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_scope_finds_only_its_notes(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """Search cached scopes, small scopes exactly, and the vector index that contains all scopes."""
    exact_up_to, cache_limit = spaces.EXACT_NOTES, scope_cache.MAX_NOTES
    monkeypatch.setattr(spaces, "EXACT_NOTES", 0)
    monkeypatch.setattr(spaces, "PENDING", 1)
    scopes = [Scope(tenant="acme", user=f"user {number}") for number in range(soak_scale(3000))]
    record_property("notes", len(EVENTS) * len(scopes))
    chosen = random.Random(5)
    questions = {scope: chosen.choice(EVENTS) for scope in scopes}

    def add_events(scope: Scope) -> set[str]:
        return set(memory.add_many([{"id": str(n), "content": text} for n, text in enumerate(EVENTS)], scope=scope))

    def search_own(scope: Scope) -> list[Any]:
        return memory.search(questions[scope], k=3 * len(EVENTS), scope=scope)

    with ThreadPoolExecutor(THREADS) as pool:
        own_ids = dict(zip(scopes, pool.map(add_events, scopes), strict=True))
        assert len(set().union(*own_ids.values())) == len(EVENTS) * len(scopes)
        memory.flush()
        for exact, limit in ((exact_up_to, cache_limit), (exact_up_to, -1), (0, -1)):
            monkeypatch.setattr(spaces, "EXACT_NOTES", exact)
            monkeypatch.setattr(scope_cache, "MAX_NOTES", limit)
            for scope, hits in zip(scopes, pool.map(search_own, scopes), strict=True):
                assert {hit.note.id for hit in hits} == own_ids[scope]
                assert hits[0].note.content == questions[scope]
    assert memory.stats()["scopes"] == len(scopes)
    assert memory.stats()["notes"] == len(EVENTS) * len(scopes)
    assert memory.stats(scope=scopes[-1])["notes"] == len(EVENTS)


ALIKE = [
    *(Scope(tenant=name) for name in ("acme/ann", "Acme/Ann", "acme ann", "acme/ann bob", "acme/ann ", " acme/ann")),
    *(Scope(user=name) for name in ("acme/ann", "acme", "ann", "null", "None", "\u00e4nn", "a\u0308nn", "ann\u200b")),
    *(Scope(user=name) for name in ("stra\u00dfe", "strasse", "STRASSE", "ann\n", "{}", "*", "\u202ennA")),
    Scope(),
    Scope(tenant="acme", user="ann"),
    Scope(tenant="acme", agent="ann"),
    Scope(user="acme", agent="ann"),
    Scope(tenant="ann", user="acme"),
]
"""Scopes that differ in characters that a database might fold, trim, split or swap."""


def test_scopes_with_similar_names_are_separate(memory: Memory) -> None:
    """Each scope contains an equal event with the same id."""
    ids = {scope: memory.add_many([{"id": "1", "content": EVENTS[0]}], scope=scope)[0] for scope in ALIKE}
    assert len(set(ids.values())) == len(ALIKE)
    assert set(memory.scopes()) == set(ALIKE)
    for scope, id in ids.items():
        memory.update(id, content=f"{EVENTS[0]} It was {scope}.", scope=scope)
    memory.flush()
    for scope, id in ids.items():
        assert [hit.note.id for hit in memory.search("Who lost a key?", scope=scope)] == [id]
        assert memory.get(id, scope=scope).content == f"{EVENTS[0]} It was {scope}."
        assert {term.notes for term in memory.terms(id, scope=scope)} == {1}
    for scope in ALIKE[::2]:
        assert memory.delete_scope(scope=scope) == 1
    assert set(memory.scopes()) == set(ALIKE[1::2])
    assert [memory.stats(scope=scope)["notes"] for scope in ALIKE[1::2]] == [1] * len(ALIKE[1::2])
    assert memory.check() == []


# --------------------------------------------------------------------------------------------------------- odd texts

FRAGMENTS = [
    "'", '"', "`", "``", "\\", "\\\\'", "\\u0027", "{", "}", "{{scope}}", "${x}", "$scope", "$given.words", "//", "/*",
    "*/", "--", ";", "*:*", "*", "?", "~2", "^9", "[a TO z]", "AND OR NOT", "NOT", "+must -not", "title:key", "(", ")",
    "'}) DETACH DELETE n //", "MATCH (n) DETACH DELETE n", "CALL db.labels()", "LOAD CSV FROM 'file:///x' AS x",
    "\n", "\t", "\r\n", "\x01", "\x1f", "\x7f", "\u2028", "\ufeff", "\u202e\u05d0\u05d1\u2069", "\u0645\u0631\u062d",
    "e\u0301", "\U0001f468\u200d\U0001f467", "\U0001f3f4\U000e0067", "\u6f22\u5b57\u304b", "\u0130I\u0131i",
    "%s %(x)s", "null", "true", "NaN", "0", "=", "w=2", "x" * 300, "ship ship harbour",
]  # fmt: skip
"""Fragments with a meaning in Cypher, Lucene, templates, terminals or Unicode."""
PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
ODD = (
    st.lists(st.sampled_from(FRAGMENTS) | st.text(PLAIN, max_size=6), min_size=1, max_size=5)
    .map(" ".join)
    .filter(lambda text: text.strip() != "")
)


@pytest.mark.soak
@pytest.mark.parametrize("name", neo4j_servers.EVERY)
def test_unusual_texts_are_stored_and_found(name: str, soak_scale: Callable[[int], int]) -> None:
    """Texts return unchanged, notes and answers equal those of the embedded store, other scopes stay the same."""
    server = neo4j_servers.server(name)
    neo4j_servers.forget_all(server)
    bystander = Scope(user="bystander")
    with Memory(server.url, auth=server.auth) as memory:
        memory.add_many([{"id": str(n), "content": text} for n, text in enumerate(EVENTS)], scope=bystander)
        for n, id in enumerate([note.id for note in memory.list(scope=bystander).notes]):
            memory.update(id, tags=["a", "b"], keywords=[str(n)], scope=bystander)
        memory.flush()
        untouched = picture(memory, bystander)

    def work(texts: list[str]) -> None:
        # Opened here: background jobs of an open memory draw random pauses while examples are drawn.
        with Memory(server.url, auth=server.auth) as memory, Memory(":memory:") as reference:
            compare(memory, reference, texts, Scope(user=str(next(numbers))))

    numbers = iter(range(100_000))

    @settings(max_examples=soak_scale(200))
    @given(texts=st.lists(ODD, min_size=1, max_size=3, unique=True))
    def stays_text(texts: list[str]) -> None:
        work(texts)

    stays_text()
    with Memory(server.url, auth=server.auth) as memory:
        assert picture(memory, bystander) == untouched
        assert memory.check() == []
    assert [name for name in neo4j_servers.properties(server) if not OURS.fullmatch(name)] == []


OURS = re.compile(r"[A-Za-z0-9_]+\.[a-z0-9_]+")
"""A label or type with a property name; none of them may come from a text."""


def compare(memory: Memory, reference: Memory, texts: list[str], scope: Scope) -> None:
    """Store texts in every field and search for them by each field."""
    events = [
        {
            "id": f"{number} {text}", "content": text, "title": f"{text} {number}", "speaker": text, "session": text,
            "source": f"{text}.txt", "metadata": {text: text}, "payload": {text: text},
        }
        for number, text in enumerate(texts)
    ]  # fmt: skip
    for instance in (memory, reference):
        for id, text in zip(instance.add_many(events, scope=scope), texts, strict=True):
            instance.update(id, tags=[text], keywords=[text, "harbour"], scope=scope)
        instance.flush()
    stored = list(memory.dump(scope=scope))
    assert [(event.content, event.speaker, event.session, event.payload) for event, _ in stored] == [
        (text, text, text, {text: text}) for text in texts
    ]
    assert [note.tags for _, notes in stored for note in notes] == [(text,) for text in texts]
    assert picture(memory, scope) == picture(reference, scope)
    for text in texts:
        for options in ({}, {"session": text}, {"speaker": text}, {"tags": [text]}, {"filter": {text: text}}):
            contents = search_texts(memory, f"harbour {text}", scope=scope, **options)
            assert text in contents
            assert contents == search_texts(reference, f"harbour {text}", scope=scope, **options)


def test_very_long_words_and_names_are_stored_and_found(memory: Memory) -> None:
    word, name, longer = "x" * 40_000, "\u00e9" * 1_000, "\u00e9" * 9_000
    content = f"The harbour {word[:1000]}."
    id = memory.add(
        content, title=longer, speaker=longer, session=name, source=name, metadata={name: name, "w": word},
        payload={word: word},
    )  # fmt: skip
    long_id = memory.add(f"The long {word}.", wait=True)
    assert memory.get(memory.get(long_id).event_ids[0]).content == f"The long {word}."
    assert memory.delete(long_id) > 1
    other = memory.add("The harbour is closed.")
    memory.update(id, tags=[longer], keywords=[longer])
    for field in ("session", "source"):
        with pytest.raises(InvalidEvent, match=rf"{field}.* has 9,000 characters: a name has at most 1,000"):
            memory.add("x", **{field: longer})
    memory.flush()
    note = memory.get(id)
    assert (note.content, note.title, note.speaker, note.session) == (content, longer, longer, name)
    assert memory.get(note.event_ids[0]).payload == {word: word}
    assert memory.search(word[:1000])[0].note.id == id
    for options in ({"session": name}, {"speaker": longer}, {"tags": [longer]}, {"filter": {"w": word}}):
        assert [hit.note.id for hit in memory.search("harbour", **options)] == [id]
    assert memory.check() == []
    assert memory.delete(source=name) == 1
    assert [note.id for note in memory.list().notes] == [other]
    assert memory.check() == []


@pytest.mark.parametrize("text", ["a\0b", "a \ud800 b", "\udfff"])
def test_invalid_text_is_refused(server: Server, memory: Memory, text: str) -> None:
    """The error is one line and nothing is written; a payload is JSON, which can escape a lone surrogate."""
    import neo4j

    for field in ("content", "title", "speaker", "session", "source", "id"):
        with pytest.raises(InvalidEvent, match=field) as error_info:
            memory.add(**{"content": "harbour", field: text})  # type: ignore[arg-type]
        assert "\n" not in str(error_info.value)
    with pytest.raises(InvalidEvent):
        memory.add_many([{"content": "The harbour is open."}, {"content": text}])
    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        ((count,),) = driver.execute_query("MATCH (e:Event) RETURN count(e)", database_=DATABASE).records
    assert count == 0
    if "\0" not in text:
        id = memory.add("harbour", payload={"said": text})
        assert memory.get(memory.get(id).event_ids[0]).payload == {"said": text}
