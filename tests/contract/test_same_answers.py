"""Same answers: the same events give the same ranking on every store, in any order of arrival."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.conftest import BACKENDS, EVERY_STORE, PERSISTENT
from zettel import Event, Memory, Scope
from zettel.bench.metrics import overlap
from zettel.bench.synthetic import large_scope
from zettel.testing.reference_store import ReferenceStore

pytestmark = pytest.mark.every_release

DATA = Path(__file__).parents[1] / "data"
DEMO = Path(__file__).parents[2] / "zettel" / "cli" / "demo"
OVERLAP = 0.98
FIRST = 10


def answers(memory: Memory, questions: list[str]) -> list[list[str]]:
    """Return the texts of the first ten hits for each question."""
    return [[hit.note.content for hit in memory.search(question, k=FIRST)] for question in questions]


@pytest.mark.parametrize("backend", PERSISTENT)
@pytest.mark.parametrize("path", [DEMO / "conversation.json", DATA / "team.json"], ids=lambda path: path.stem)
def test_conversations_give_the_same_answers(backend: str, path: Path, tmp_path: Path) -> None:
    questions = [pair["question"] for pair in json.loads(path.read_text())[0]["qa"]]
    rankings = []
    for store in (BACKENDS[backend](tmp_path), ReferenceStore()):
        with Memory(store) as memory:
            memory.import_transcript(path)
            memory.flush()
            rankings.append(answers(memory, questions))
    assert overlap(*rankings) >= OVERLAP
    assert [hits[0] for hits in rankings[0]] == [hits[0] for hits in rankings[1]]


@pytest.mark.parametrize("backend", PERSISTENT)
@pytest.mark.slow
def test_documents_give_the_same_answers(backend: str, tmp_path: Path) -> None:
    documents = [json.loads(line) for line in (DATA / "documents.jsonl").read_text().splitlines()]
    questions = [json.loads(line) for line in (DATA / "documents-questions.jsonl").read_text().splitlines()]
    events = [Event(id=document["title"], title=document["title"], content=document["text"]) for document in documents]
    rankings = []
    for store in (BACKENDS[backend](tmp_path), ReferenceStore()):
        with Memory(store) as memory:
            memory.add_many(events)
            memory.flush()
            rankings.append(answers(memory, [document["question"] for document in questions]))
    assert overlap(*rankings) >= OVERLAP


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", PERSISTENT)
def test_a_large_scope_gives_the_same_answers(
    backend: str, tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    """The candidates of a large scope lose almost nothing compared with an exhaustive search."""
    events, questions = large_scope(soak_scale(20_000))
    rankings = []
    for store in (BACKENDS[backend](tmp_path), ReferenceStore()):
        with Memory(store) as memory:
            for start in range(0, len(events), 1000):
                memory.add_many(events[start : start + 1000])
            memory.flush()
            rankings.append(answers(memory, questions))
    record_property("notes", len(events))
    record_property("overlap", round(overlap(*rankings), 4))
    assert overlap(*rankings) >= OVERLAP


titles = [
    "The Glass Orchard",
    "Mira Solveng",
    "Tarn Hollow",
    "1984",
    "O'Neill's Rest",
    "Zürich (town)",
    "東京の塔",
    "Up",
]
texts = st.lists(
    st.sampled_from(
        [*titles, "and then", "the", "zürich,", "glass orchard", "Tarn", "Hollow.", "東京の塔です", "1 984", "up"]
    ),
    min_size=1,
    max_size=5,
).map(" ".join)
documents = st.lists(st.tuples(st.none() | st.sampled_from(titles), texts), min_size=2, max_size=7)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", EVERY_STORE)
def test_terms_and_mentions_do_not_depend_on_the_order(
    backend: str, tmp_path_factory: pytest.TempPathFactory, soak_scale: Any
) -> None:
    """Any order and batch size, with other notes added and deleted meanwhile, gives the same terms and MENTIONS."""

    @given(documents, st.randoms(use_true_random=False))
    @settings(max_examples=soak_scale(400))
    def run(texts: list[tuple[str | None, str]], chance: random.Random) -> None:
        events = [Event(id=str(n), title=title, content=text) for n, (title, text) in enumerate(texts)]
        passing = [Event(id=f"passing {n}", title=titles[n % len(titles)], content=" ".join(titles)) for n in range(3)]
        shown = []
        for mixed in (False, True):
            with Memory(BACKENDS[backend](tmp_path_factory.mktemp("order"))) as memory:
                order = list(events)
                if mixed:
                    order = chance.sample([*events, *passing], len(events) + len(passing))
                while order:
                    size = chance.randint(1, 3)
                    memory.add_many(order[:size])
                    order = order[size:]
                for record, notes in list(memory.dump()) if mixed else []:
                    if str(record.external_id).startswith("passing"):
                        memory.delete(notes[0].id)
                shown.append(only_exact(memory))
                assert memory.check() == []
        assert shown[0] == shown[1]

    run()


def only_exact(memory: Memory) -> dict[str, Any]:
    """Return terms and MENTIONS by event, without near links, which depend on the order of arrival."""
    keys = {notes[0].id: record.external_id for record, notes in memory.dump()}
    mentions = sorted(
        (str(keys[link.source]), str(keys[link.target]), link.reason)
        for id in keys
        for link in memory.links(id)
        if link.source == id and link.type.value == "MENTIONS"
    )
    return {
        "mentions": mentions,
        "terms": {str(keys[id]): [(t.key, t.kind, t.notes) for t in memory.terms(id)] for id in keys},
    }


def test_near_links_do_not_depend_on_batches(memory: Memory) -> None:
    turns = [
        ("assistant", "The Assistant was very slow today, we waited an hour."),
        ("Ann", "Why was the Assistant so slow when we asked it today?"),
        ("user", "Why was the Assistant so slow when I asked it today?"),
        ("Ann", "The Kestrel is slow today, we waited an hour for the Kestrel."),
        ("Bob", "Why was the Kestrel so slow today, Ann?"),
    ]
    links = []
    for at_once in (1, 2, len(turns)):
        scope = Scope(user=f"linked by {at_once}")
        events = [Event(id=str(n), content=text, speaker=speaker) for n, (speaker, text) in enumerate(turns)]
        for start in range(0, len(events), at_once):
            memory.add_many(events[start : start + at_once], scope=scope)
            memory.flush()
        event_ids = {note.id: event.external_id for event, notes in memory.dump(scope=scope) for note in notes}
        links.append({
            (event_ids[link.source], event_ids[link.target], link.reason)
            for id in event_ids for link in memory.links(id, scope=scope)
        })  # fmt: skip
    assert links[0]
    assert links[0] == links[1] == links[2]
