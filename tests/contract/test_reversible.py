"""Reversibility: a note's state is the fold of its base and live revisions, and any version can be restored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import LIFE, search_texts
from zettel import Memory
from zettel.errors import InvalidInput, NotFound
from zettel.model import EDITABLE

pytestmark = pytest.mark.over_http

FIELDS = [name for name in EDITABLE if name != "kind"]


def state(memory: Memory, id: str) -> dict[str, Any]:
    return memory.get(id).model_dump(include={*FIELDS, "authored"})


def test_revert_restores_everything(memory: Memory) -> None:
    id = memory.add("The ferry leaves at nine.", speaker="Ann")
    memory.flush()
    before, links = state(memory, id), memory.links(id)
    version = memory.get(id).version
    memory.update(id, content="The train leaves at ten.", keywords=["railway"], importance=0.9)
    assert search_texts(memory, "railway")[0] == "The train leaves at ten."
    assert memory.get(id).authored == ("keywords",)
    memory.revert(id, version)
    memory.flush()
    assert state(memory, id) == before
    assert memory.links(id) == links
    assert search_texts(memory, "When does the ferry leave?") == ["The ferry leaves at nine."]


def test_a_revert_can_be_reverted(memory: Memory) -> None:
    id = memory.add("One.")
    memory.flush()
    start = memory.get(id).version
    memory.update(id, content="Two.")
    memory.revert(id, start)
    assert memory.get(id).content == "One."
    memory.revert(id, start + 1)
    assert memory.get(id).content == "Two."
    assert memory.get(id).version == start + 3
    live = {revision.version: revision.live for revision in memory.history(id)}
    assert live[start + 1] is True
    assert live[start + 2] is False


def test_metadata_with_lone_surrogates_can_be_changed_and_reverted(memory: Memory) -> None:
    """A chat truncated inside an emoji contains a lone surrogate, which a JSON export writes as an escape."""
    cut, other = {"seen": ["cut \ud83d"]}, {"seen": [{"cut \udc4b": None}]}
    id = memory.add("The ferry leaves at nine.", id="cut", metadata=cut)
    memory.update(id, metadata=other)
    assert memory.get(id).metadata == memory.history(id)[-1].change["metadata"] == other
    assert memory.add("The ferry leaves at ten.", id="cut", metadata=cut, on_conflict="revise") == id
    assert memory.get(id).metadata == cut
    assert memory.revert(id, 1).metadata == cut


def test_history_contains_cause_change_and_inputs(memory: Memory) -> None:
    id = memory.add("The kiln is cold.")
    memory.update(id, tags=["pottery"])
    base, *_, last = memory.history(id)
    assert (base.version, base.cause.by, base.change["content"]) == (1, "add", "The kiln is cold.")
    assert last.cause.by == "user"
    assert last.change == {"tags": ["pottery"]}
    assert last.inputs == ((id, last.version - 1),)


def test_near_links_are_reversible_decisions(memory: Memory) -> None:
    old = memory.add("Kestrel the dog howls when Ann plays the cello.")
    new = memory.add("When Ann plays the cello, Kestrel the dog howls.")
    memory.flush()
    (link,) = memory.links(new)
    assert (link.source, link.target) == (new, old)
    assert "cosine" in link.reason
    assert memory.history(new)[-1].cause.by == "link"
    memory.revert(new, 1)
    assert memory.links(new) == []


@pytest.mark.here
def test_unknown_ids_and_versions_raise(memory: Memory) -> None:
    id = memory.add("Something.")
    with pytest.raises(NotFound, match="n_nothing"):
        memory.history("n_nothing")
    with pytest.raises(InvalidInput, match="no version 99"):
        memory.revert(id, 99)
    with pytest.raises(InvalidInput, match="event_ids cannot be set"):
        memory.update(id, event_ids=["e_1"])
    with pytest.raises(InvalidInput, match="importance"):
        memory.update(id, importance=7)
    with pytest.raises(InvalidInput, match="content is empty"):
        memory.update(id, content="   ")
    assert len(memory.history(id)) == 1


edits = st.one_of(
    st.tuples(st.just("content"), st.sampled_from([event["content"] for event in LIFE])),
    st.tuples(st.just("keywords"), st.lists(st.sampled_from(["oslo", "cello", "dog"]), max_size=2, unique=True)),
    st.tuples(st.just("tags"), st.lists(st.sampled_from(["music", "home"]), max_size=2, unique=True)),
    st.tuples(st.just("importance"), st.sampled_from([0.0, 0.25, 1.0])),
    st.tuples(st.just("revert"), st.integers(1, 8)),
)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", EVERY_STORE)
def test_any_history_can_be_reverted(
    backend: str, tmp_path_factory: pytest.TempPathFactory, soak_scale: Any
) -> None:
    """Random edits and reverts: reverting to each version restores it, and the index agrees."""

    @given(st.lists(edits, min_size=1, max_size=8))
    @settings(max_examples=soak_scale(400))
    def walk(steps: list[tuple[str, Any]]) -> None:
        with Memory(BACKENDS[backend](tmp_path_factory.mktemp("history"))) as memory:
            id = memory.add("The beginning of it all.")
            was = {1: state(memory, id)}
            for name, value in steps:
                if name == "revert":
                    memory.revert(id, min(value, max(was)))
                else:
                    memory.update(id, **{name: value})
                was[memory.get(id).version] = state(memory, id)
            assert sorted(was) == list(range(1, len(steps) + 2))
            for version in sorted(was, reverse=True):
                memory.revert(id, version)
                assert state(memory, id) == was[version]
            assert memory.check() == []

    walk()
