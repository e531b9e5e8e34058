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
    anvil, bellows, chisel, dovetail = ids
    memory.link(anvil, bellows, "RELATES", reason="tools")
    memory.link(chisel, bellows, "CONTRADICTS", reason="not at once")
    memory.add("Elsewhere.", scope=OTHER)
    memory.flush()

    def page(**arguments: Any) -> tuple[list[str], set[tuple[str, str]]]:
        graph = memory.graph(**arguments)
        assert {note.id for note in graph.notes} <= {*ids}
        return [note.id for note in graph.notes], {(link.source, link.target) for link in graph.links}

    notes, links = page()
    assert notes == ids
    assert {(anvil, bellows), (chisel, bellows)} <= links
    first = memory.graph(limit=2)
    assert [note.id for note in first.notes] == [anvil, bellows]
    assert all({link.source, link.target} <= {anvil, bellows} for link in first.links), "none leads out of the page"
    assert page(limit=2, cursor=first.cursor)[0] == [chisel, dovetail]

    notes, links = page(around=anvil, hops=1)
    assert notes[0] == anvil
    assert bellows in notes
    notes, links = page(around=anvil)
    assert {anvil, bellows, chisel} <= {*notes}
    assert (chisel, bellows) in links
    assert len(page(around=anvil, limit=2)[0]) == 2

    assert len(memory.graph(scope=OTHER).notes) == 1
    event = memory.get(anvil).event_ids[0]
    for unknown, scope in ((anvil, OTHER), ("n_unknown", None), (event, None)):
        with pytest.raises(NotFound):
            memory.graph(around=unknown, scope=scope)
    with pytest.raises(InvalidInput, match="hops must be from 1 to 5, got 9"):
        memory.graph(around=anvil, hops=9)
    with pytest.raises(InvalidInput, match="limit=0"):
        memory.graph(limit=0)
