"""The usage of a memory: which notes are found and used, and which are not."""

from __future__ import annotations

import pytest

from zettel import LinkType, Memory
from zettel.errors import InvalidInput
from zettel.model import SessionSize


def test_usage_names_used_and_unused_notes(memory: Memory) -> None:
    key = memory.add("The spare key hangs behind the red barn door.", session="yard", speaker="Bo")
    memory.add("We painted the barn in the third summer.", session="yard", speaker="Bo")
    soup = memory.add("Lentil soup needs an hour.", session="kitchen", speaker="Ann")
    twins = [memory.add("The bin is emptied on Mondays.", id=name, speaker="Ann") for name in ("one", "two")]
    memory.flush()
    assert memory.usage().searches == 0
    hits = memory.search("Where is the spare key?", k=1)
    memory.feedback(str(hits[0].search_id), answer="Behind the barn door.")
    memory.search("Where is the spare key?", k=2)
    memory.link(twins[1], soup, LinkType.CONTRADICTS)
    usage = memory.usage()
    assert (usage.notes, usage.searches, usage.reported) == (5, 2, 1)
    assert (usage.most_used[0].note, usage.most_used[0].used, usage.most_used[0].found) == (key, 1, 2)
    assert usage.most_used[0].text == "The spare key hangs behind the red barn door."
    assert usage.never_used == 4
    assert usage.never_found == len(usage.unused)
    assert soup in [row.note for row in usage.unused]
    assert usage.duplicates == ((twins[0], twins[1]),)
    assert usage.contradictions == 1
    assert usage.sessions[0] == SessionSize(session="yard", notes=2, characters=85)
    assert {row.session for row in usage.sessions} == {"yard", "kitchen", None}
    assert len(memory.usage(limit=1).unused) == 1
    memory.delete(key)
    after = memory.usage()
    assert (after.searches, after.most_used) == (0, ()), "the usage of a deleted note is deleted, too"
    with pytest.raises(InvalidInput):
        memory.usage(limit=0)


def test_derived_notes_with_changed_sources_are_stale(memory: Memory) -> None:
    ids = [memory.add(f"The harbour of Risør has berth {number} for the ferry.", speaker="Ann") for number in range(8)]
    memory.flush()
    memory.evolve()
    derived = [note.id for note in memory.list(kinds=["insight"]).notes]
    assert derived
    assert memory.usage().stale == ()
    for id in ids:
        memory.update(id, content="The harbour of Risør was closed.")
    memory.flush()
    assert {row.note for row in memory.usage().stale} <= set(derived)
    assert memory.usage().stale
