"""The store caches LLM answers, deletes them with their notes, and adds up their cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import cache_answer, decide, write
from zettel import LinkType, Memory, Scope
from zettel.core.follow_ups import new_job
from zettel.model import JobKind, ModelUse, Note
from zettel.ports import GraphStore
from zettel.ports.operations import EraseAnswers, PutUse

BOB = Scope(tenant="acme", user="bob")
MONDAY, TUESDAY = date(2026, 11, 16), date(2026, 11, 17)
LATER = datetime(2199, 1, 1, tzinfo=timezone.utc)


def store_of(memory: Memory) -> GraphStore:
    store: GraphStore = memory._bridge.inner._backend.memory.engine.store
    return store


def answer(memory: Memory, key: str, scope: Scope | None = None) -> str | None:
    return memory._bridge.call(partial(store_of(memory).answer, scope or memory.scope, key))


def use(memory: Memory, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
    return memory._bridge.call(partial(store_of(memory).model_use, scope, since))


def pending(
    memory: Memory, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
) -> int:
    return memory._bridge.call(partial(store_of(memory).pending, scope, kinds, due_by))


def three_notes(memory: Memory) -> list[str]:
    ids = [memory.add(f"Ship {name} lies in the harbour.") for name in ("Aurora", "Borealis", "Corona")]
    memory.flush()
    return ids


def test_an_answer_is_cached_and_replaced(memory: Memory) -> None:
    first, second, _ = three_notes(memory)
    assert answer(memory, "k") is None
    cache_answer(memory, "k", '{"tags": ["ship"], "ü": "日本"}', first, second, first)
    cache_answer(memory, "without notes", "It said nothing of them.")
    assert answer(memory, "k") == '{"tags": ["ship"], "ü": "日本"}'
    cache_answer(memory, "k", "", second)
    assert answer(memory, "k") == ""
    memory.delete(first)  # only the replaced answer depended on it
    assert answer(memory, "k") == ""
    memory.delete(second)
    assert answer(memory, "k") is None
    assert answer(memory, "without notes") == "It said nothing of them."
    assert memory.check() == []


def test_answers_are_cached_per_scope(memory: Memory) -> None:
    (mine, *_) = three_notes(memory)
    bobs = memory.add("Bob keeps bees.", scope=BOB)
    cache_answer(memory, "k", "ships", mine)
    assert answer(memory, "k", BOB) is None
    cache_answer(memory, "k", "bees", bobs, scope=BOB)
    write(memory, EraseAnswers((mine, bobs)), scope=BOB)
    assert (answer(memory, "k"), answer(memory, "k", BOB)) == ("ships", None)
    assert answer(memory, "k", Scope(user="nobody")) is None


@pytest.mark.parametrize("index", range(3))
def test_an_answer_is_deleted_with_any_of_its_notes(memory: Memory, index: int) -> None:
    ids = three_notes(memory)
    for key, sources in {"all": ids, "it": [ids[index]], "others": [id for id in ids if id != ids[index]]}.items():
        cache_answer(memory, key, f"about {key}", *sources)
    memory.delete(ids[index])
    assert [answer(memory, key) for key in ("all", "it", "others")] == [None, None, "about others"]
    assert memory.check() == []


def test_an_answer_is_deleted_with_derived_notes(memory: Memory) -> None:
    source, derived, other = three_notes(memory)
    decide(memory, derived, source, LinkType.DERIVED_FROM)
    cache_answer(memory, "derived", "about what was derived", derived, other)
    memory.delete(source)
    assert answer(memory, "derived") is None


def test_an_answer_is_deleted_with_reverted_wording(memory: Memory) -> None:
    source, reworded, other = three_notes(memory)
    decide(memory, reworded, source, LinkType.RELATES, context="It lies beside Aurora.")
    cache_answer(memory, "reworded", "about what the source had changed", reworded, other)
    cache_answer(memory, "other", "about what it had not", other)
    memory.delete(source)
    note = memory.get(reworded)
    assert isinstance(note, Note)
    assert "Aurora" not in note.context
    assert answer(memory, "reworded") is None
    assert answer(memory, "other") == "about what it had not"


def test_a_late_answer_about_a_deleted_note_is_dropped(memory: Memory) -> None:
    deleted, remaining, _ = three_notes(memory)
    memory.delete(deleted)
    cache_answer(memory, "late", "about both", remaining, deleted)
    assert answer(memory, "late") is None


def test_deleting_a_scope_deletes_its_answers_and_costs(memory: Memory) -> None:
    (mine, *_) = three_notes(memory)
    bobs = memory.add("Bob keeps bees.", scope=BOB)
    for scope, note in ((None, mine), (BOB, bobs)):
        cache_answer(memory, "k", "remaining", note, scope=scope)
        write(memory, PutUse(ModelUse(day=MONDAY, model="small", calls=1)), scope=scope)
    memory.delete_scope()
    assert (answer(memory, "k"), answer(memory, "k", BOB)) == (None, "remaining")
    assert use(memory, memory.scope) == []
    assert use(memory, None) == use(memory, BOB) == [ModelUse(day=MONDAY, model="small", calls=1)]
    three_notes(memory)
    assert answer(memory, "k") is None
    assert memory.check() == []


def test_costs_are_added_up(memory: Memory) -> None:
    three_notes(memory)
    memory.add("Bob keeps bees.", scope=BOB)
    call = {"calls": 1, "prompt_tokens": 900, "completion_tokens": 70, "usd": 0.25}
    spent: list[tuple[Scope | None, ModelUse]] = [
        (None, ModelUse(day=TUESDAY, model="small", **call)),
        (None, ModelUse(day=MONDAY, model="small", **call)),
        (None, ModelUse(day=MONDAY, model="small", hits=1)),
        (None, ModelUse(day=MONDAY, model="large", **{**call, "usd": 2.5})),
        (BOB, ModelUse(day=MONDAY, model="small", **call)),
    ]
    for scope, model_use in spent:
        write(memory, PutUse(model_use), scope=scope)
    write(memory, PutUse(spent[0][1]), PutUse(spent[0][1]))
    large = ModelUse(day=MONDAY, model="large", **{**call, "usd": 2.5})
    monday = ModelUse(day=MONDAY, model="small", **{**call, "hits": 1})
    tuesday = ModelUse(day=TUESDAY, model="small", calls=3, prompt_tokens=2700, completion_tokens=210, usd=0.75)
    total = ModelUse(day=MONDAY, model="small", calls=2, hits=1, prompt_tokens=1800, completion_tokens=140, usd=0.5)
    assert use(memory, memory.scope) == [large, monday, tuesday]
    assert use(memory, memory.scope, TUESDAY) == use(memory, None, TUESDAY) == [tuesday]
    assert use(memory, memory.scope, date(2026, 11, 18)) == []
    assert use(memory, BOB) == [spent[4][1]]
    assert use(memory, None) == [large, total, tuesday]
    assert use(memory, Scope(user="nobody")) == []


def test_waiting_jobs_are_counted_by_kind(memory: Memory) -> None:
    id, *_ = three_notes(memory)
    assert pending(memory, memory.scope) == 0
    note = memory.get(id)
    assert isinstance(note, Note)
    write(memory, *(new_job(memory.scope, kind, LATER, note) for kind in (JobKind.ANNOTATE, JobKind.LINK)))
    write(memory, new_job(BOB, JobKind.ANNOTATE, LATER), scope=BOB)
    for kinds, waiting in ((None, 2), ([JobKind.ANNOTATE, JobKind.LINK], 2), ([JobKind.LINK], 1), ([], 0)):
        assert pending(memory, memory.scope, kinds) == waiting
    assert [pending(memory, None, kinds) for kinds in (None, [JobKind.ANNOTATE])] == [3, 2]
    assert pending(memory, Scope(user="nobody"), [JobKind.ANNOTATE]) == 0
    write(memory, new_job(memory.scope, JobKind.REEMBED, LATER + timedelta(seconds=1)))
    for kinds, by, waiting in ((None, LATER, 2), (None, LATER - timedelta(seconds=1), 0), ([JobKind.LINK], LATER, 1)):
        assert pending(memory, memory.scope, kinds, by) == waiting
    assert pending(memory, None, due_by=LATER) == 3
    assert pending(memory, None) == 4


def test_answers_and_costs_survive_reopening(url: Any) -> None:
    with Memory(url) as memory:
        id, *_ = three_notes(memory)
        cache_answer(memory, "k", "remaining", id)
        write(memory, PutUse(ModelUse(day=MONDAY, model="small", calls=1, usd=0.5)))
    with Memory(url) as memory:
        assert answer(memory, "k") == "remaining"
        assert use(memory, None) == [ModelUse(day=MONDAY, model="small", calls=1, usd=0.5)]


def test_exports_exclude_answers_and_costs(memory: Memory, tmp_path: Path) -> None:
    id, *_ = three_notes(memory)
    cache_answer(memory, "k", "Unrepeatable words.", id)
    write(memory, PutUse(ModelUse(day=MONDAY, model="small-but-costly", calls=1)))
    memory.export(tmp_path / "ann.zettel", "zettel")
    exported = (tmp_path / "ann.zettel").read_text(encoding="utf-8")
    assert id in exported
    assert "Unrepeatable" not in exported
    assert "small-but-costly" not in exported
