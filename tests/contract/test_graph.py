"""`graph` returns notes with the links between them: a page of a scope or the neighbourhood of a note."""

from __future__ import annotations

from typing import Any

import pytest

from zettel import Memory, Scope
from zettel.errors import InvalidInput, NotFound

pytestmark = pytest.mark.over_http

OTHER = Scope(user="somebody else")


def test_notes_come_with_the_links_between_them(memory: Memory) -> None:
    ids = [memory.add(f"{name} stands by itself.") for name in ("Anvil", "Bellows", "Chisel", "Dovetail")]
    memory.flush()
    one, two, three, alone = ids
    memory.link(one, two, "RELATES", reason="tools")
    memory.link(three, two, "CONTRADICTS", reason="not at once")
    memory.add("Elsewhere.", scope=OTHER)
    memory.flush()

    def told(**asked: Any) -> tuple[list[str], set[tuple[str, str]]]:
        found = memory.graph(**asked)
        assert {note.id for note in found.notes} <= {*ids}
        return [note.id for note in found.notes], {(link.source, link.target) for link in found.links}

    notes, links = told()
    assert notes == ids
    assert {(one, two), (three, two)} <= links
    first = memory.graph(limit=2)
    assert [note.id for note in first.notes] == [one, two]
    assert all({link.source, link.target} <= {one, two} for link in first.links), "none leads out of the page"
    assert told(limit=2, cursor=first.cursor)[0] == [three, alone]

    notes, links = told(around=one, hops=1)
    assert notes[0] == one
    assert two in notes
    notes, links = told(around=one)
    assert {one, two, three} <= {*notes}
    assert (three, two) in links
    assert len(told(around=one, limit=2)[0]) == 2

    assert len(memory.graph(scope=OTHER).notes) == 1
    event = memory.get(one).event_ids[0]
    for unknown, scope in ((one, OTHER), ("n_unknown", None), (event, None)):
        with pytest.raises(NotFound):
            memory.graph(around=unknown, scope=scope)
    with pytest.raises(InvalidInput, match="hops must be from 1 to 5, got 9"):
        memory.graph(around=one, hops=9)
    with pytest.raises(InvalidInput, match="limit=0"):
        memory.graph(limit=0)
