"""Checkpoints: shorter histories with the same state and the same decisions of people."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_fold import BASE, link, revision
from zettel.core import checkpoints
from zettel.core.decisions import reverted, set_by_people
from zettel.core.fold import live_versions, state_of
from zettel.core.merges import live_merges
from zettel.model import CallKind, Cause, Checkpoint, Input, JobKind, LinkKey, LinkType, Revision
from zettel.ports import NoteHistory

CAUSES = [
    CallKind.PERSON, CallKind.EDIT, CallKind.IMPORT, CallKind.QUARANTINE, CallKind.RELEASE, CallKind.DELETE,
    JobKind.LINK, JobKind.ANNOTATE, JobKind.EVOLVE, JobKind.MERGE, JobKind.DECAY,
]  # fmt: skip
FIELDS: dict[str, Any] = {
    "content": st.sampled_from(["a", "b"]), "tags": st.sampled_from([["x"], ["y"], []]),
    "keywords": st.sampled_from([["k"], ["l"]]), "importance": st.sampled_from([0.1, 0.9]),
    "archived": st.booleans(),
}  # fmt: skip


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[CallKind | JobKind, dict[str, Any], list[str], list[str], int]]:
    """Draw steps: cause, change, link targets, unlinked targets, and how many of the latest versions are undone."""
    step = st.tuples(
        st.sampled_from(CAUSES),
        st.fixed_dictionaries({}, optional=FIELDS),
        st.lists(st.sampled_from(["n_2", "n_3"]), max_size=1),
        st.lists(st.sampled_from(["n_2", "n_3"]), max_size=1),
        st.sampled_from([0, 0, 0, 0, 0, 1, 1, 2, 3, 9]),
    )
    return draw(st.lists(step, max_size=40))


def made(number: int, step: tuple[Any, ...], former: list[Revision]) -> Revision:
    by, change, targets, unlinked, undone = step
    cause = Cause(by=by, principal="mallory" if by in (CallKind.QUARANTINE, CallKind.RELEASE) else None)
    never_undoes = by in (JobKind.LINK, JobKind.ANNOTATE)
    return revision(
        number,
        change,
        cause=cause,
        extracted=tuple(sorted(change.keys() & {"keywords"})) if by is CallKind.IMPORT else (),
        links=tuple(link(target, number / 100) for target in targets),
        unlinks=tuple(LinkKey("n_1", target, LinkType.RELATES) for target in unlinked) if by is CallKind.PERSON else (),
        undoes=() if never_undoes else tuple(r.version for r in former[len(former) - undone :]),
        inputs=(Input("n_1", 1), Input("n_9", number)) if by is JobKind.MERGE else (),
    )


def recent(full: list[Revision], checkpoint: Checkpoint | None) -> NoteHistory:
    """Return the history that a store with this checkpoint returns."""
    later = [r for r in full if checkpoint and r.version > checkpoint.version]
    if checkpoint is None or not checkpoints.is_valid(checkpoint.version, later):
        return NoteHistory(BASE, tuple(full))
    return NoteHistory(BASE, (*checkpoint.revisions, *later), checkpoint)


def require_same(short: NoteHistory, full: NoteHistory) -> None:
    (note, links), (expected, all_links) = state_of(short), state_of(full)
    assert note == expected
    assert set(links) == set(all_links)
    assert reverted(short) == reverted(full)
    assert set_by_people(short) == set_by_people(full)
    assert live_merges(short) == live_merges(full)
    since = short.since
    assert {v for v in live_versions(short.revisions) if v > since} == {
        v for v in live_versions(full.revisions) if v > since
    }


@settings(max_examples=150, deadline=None)
@given(steps())
def test_a_history_with_a_checkpoint_has_the_same_state(drawn: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "EVERY", 3)
        patch.setattr(checkpoints, "LAG", 2)
        full: list[Revision] = []
        checkpoint: Checkpoint | None = None
        for number, step in enumerate(drawn, 2):
            full.append(made(number, step, full))
            short = recent(full, checkpoint)
            require_same(short, NoteHistory(BASE, tuple(full)))
            new = checkpoints.next_checkpoint(short)
            checkpoint = (new and Checkpoint.model_validate_json(new.model_dump_json())) or checkpoint
            require_same(recent(full, checkpoint), NoteHistory(BASE, tuple(full)))


def test_a_checkpoint_does_not_grow_with_the_versions() -> None:
    history = NoteHistory(BASE, ())
    lengths = []
    for version in range(2, 1000):
        by: Any = (CallKind.PERSON, CallKind.IMPORT, JobKind.LINK)[version % 3]
        change: dict[str, Any] = {} if by is JobKind.LINK else {"tags": [f"t{version}"]}
        links = (link("n_2"),) if by is JobKind.LINK else ()
        history = history.then(revision(version, change, cause=Cause(by=by), links=links))
        if new := checkpoints.next_checkpoint(history):
            later = [r for r in history.revisions if r.version > new.version]
            history = NoteHistory(BASE, (*new.revisions, *later), new)
        lengths.append(len(history.revisions))
    assert max(lengths[500:]) == max(lengths[50:100])


def test_the_values_that_people_wrote_stay_known() -> None:
    by_hand = revision(2, {"tags": ["mine"]})
    later = [revision(version, {"tags": ["x"]}, cause=Cause(by="import")) for version in range(3, 200)]
    new = checkpoints.next_checkpoint(NoteHistory(BASE, (by_hand, *later)))
    assert new is not None
    assert set_by_people(NoteHistory(BASE, new.revisions, new)) == {"tags"}
    assert [r.version for r in new.revisions] == [2, new.version]


def test_a_revert_of_an_old_version_makes_a_checkpoint_invalid() -> None:
    later = tuple(revision(version, {"tags": [str(version)]}) for version in range(2, 100))
    new = checkpoints.next_checkpoint(NoteHistory(BASE, later))
    assert new is not None
    assert checkpoints.is_valid(new.version, [*later, revision(100, undoes=(99, 98))])
    assert not checkpoints.is_valid(new.version, [*later, revision(100, undoes=tuple(range(3, 100)))])
