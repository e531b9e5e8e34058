"""The fold of base and live revisions; reverts can be reverted."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from zettel.core.fold import fold, live_versions
from zettel.model import Cause, Link, LinkType, Note, Revision, to_micros

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
BASE = Note(id="n_1", content="one", event_ids=("e_1",), seq=1, recorded_at=START)


def revision(version: int, change: dict[str, Any] | None = None, **fields: Any) -> Revision:
    recorded_at = START + timedelta(days=version)
    cause = fields.pop("cause", Cause(by="user"))
    return Revision(
        note="n_1", version=version, seq=version, recorded_at=recorded_at, change=change or {}, cause=cause, **fields
    )


def link(target: str, weight: float = 1.0) -> Link:
    return Link(source="n_1", target=target, type=LinkType.RELATES, weight=weight, recorded_at=START)


def test_later_changes_win_and_versions_only_grow() -> None:
    note, _ = fold(BASE, [revision(2, {"content": "two"}), revision(3, {"content": "three", "tags": ["x"]})])
    assert (note.content, note.tags, note.version) == ("three", ("x",), 3)
    assert fold(BASE, [])[0] == BASE


def test_a_revert_can_be_reverted() -> None:
    two, revert = revision(2, {"content": "two"}), revision(3, undoes=(2,))
    assert fold(BASE, [two, revert])[0].content == "one"
    assert fold(BASE, [two, revert, revision(4, undoes=(3,))])[0].content == "two"
    assert live_versions([two, revert, revision(4, undoes=(3,))]) == {2, 4}


def test_known_at_ignores_later_revisions() -> None:
    revisions = [revision(2, {"content": "two"}), revision(3, undoes=(2,))]
    contents = [fold(BASE, revisions, to_micros(START + timedelta(days=day)))[0].content for day in (1, 2, 3)]
    assert contents == ["one", "two", "one"]


def test_links_are_part_of_the_state() -> None:
    first, second = revision(2, links=(link("n_2"), link("n_3"))), revision(3, links=(link("n_2", 0.5),))
    assert {(a.target, a.weight) for a in fold(BASE, [first, second])[1]} == {("n_2", 0.5), ("n_3", 1.0)}
    assert fold(BASE, [first, revision(3, undoes=(2,))])[1] == ()


def test_the_author_of_a_field_is_part_of_the_state() -> None:
    by_hand = revision(2, {"keywords": ["a"], "context": "b"})
    assert fold(BASE, [by_hand])[0].authored == ("context", "keywords")
    extracted_again = revision(3, {"keywords": ["c"], "content": "d"}, extracted=("keywords",))
    assert fold(BASE, [by_hand, extracted_again])[0].authored == ("context",)


@given(st.lists(st.sets(st.integers(2, 12), max_size=4), min_size=1, max_size=11))
def test_the_newest_revision_is_live_and_live_reverts_decide_the_rest(undone: list[set[int]]) -> None:
    revisions = [
        revision(n + 2, undoes=tuple(sorted(v for v in undoes if v < n + 2))) for n, undoes in enumerate(undone)
    ]
    live = live_versions(revisions)
    assert revisions[-1].version in live
    reverted = {version for r in revisions if r.version in live for version in r.undoes}
    assert live == {r.version for r in revisions} - reverted
