"""Finds the neighbours of a note over links in either direction."""

from __future__ import annotations

from zettel.core.present import present_micros
from zettel.errors import InvalidInput
from zettel.model import Link, Neighbor, Note, Scope
from zettel.ports import GraphStore
from zettel.ports.expiry import expired

MAX_HOPS = 5
"""More hops would reach the whole scope."""


def require_hops(hops: int) -> None:
    """Raise ``InvalidInput`` unless ``hops`` is from 1 to MAX_HOPS."""
    if not isinstance(hops, int) or isinstance(hops, bool) or not 1 <= hops <= MAX_HOPS:
        raise InvalidInput(f"hops must be from 1 to {MAX_HOPS}, got {hops!r}")


async def neighbors(store: GraphStore, scope: Scope, note_id: str, hops: int) -> list[Neighbor]:
    """Return the notes within ``hops`` links, nearest first, then by link weight.

    Without quarantined and expired notes.

    Each note has the first and strongest link by which it was reached.
    """
    require_hops(hops)
    reached: dict[str, tuple[int, Link]] = {}
    border = {note_id}
    for hop in range(1, hops + 1):
        found: dict[str, Link] = {}
        for link in sorted(await store.links(scope, sorted(border)), key=lambda link: -link.weight):
            for here, there in ((link.source, link.target), (link.target, link.source)):
                if here in border and there != note_id and there not in reached:
                    found.setdefault(there, link)
        reached.update({there: (hop, link) for there, link in found.items()})
        border = set(found)
        if not border:
            break
    notes, now = await store.notes(scope, list(reached)), present_micros()
    return [Neighbor(note=notes[id], hops=hop, link=link) for id, (hop, link) in reached.items() if id in notes
            and notes[id].quarantined is None and not expired(notes[id], now)]  # fmt: skip


def is_older(other: Note, note: Note) -> bool:
    """True if ``other`` arrived before ``note`` and shares no event with it."""
    return other.seq < note.seq and set(other.event_ids).isdisjoint(note.event_ids)
