"""The notes around a note, over links in either direction."""

from __future__ import annotations

from zettel.errors import InvalidInput
from zettel.model import Link, Neighbor, Scope
from zettel.ports import GraphStore

MAX_HOPS = 5
"""Further out lies the whole scope."""


def require_hops(hops: int) -> None:
    """Raise ``InvalidInput`` for a number of links that nobody walks."""
    if not isinstance(hops, int) or isinstance(hops, bool) or not 1 <= hops <= MAX_HOPS:
        raise InvalidInput(f"hops={hops!r}: use 1 to {MAX_HOPS}")


async def neighbors(store: GraphStore, scope: Scope, note_id: str, hops: int) -> list[Neighbor]:
    """Notes within ``hops`` links, nearest first, then by link weight; each by the first and strongest link found.

    Without what is in quarantine.
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
    notes = await store.notes(scope, list(reached))
    return [Neighbor(note=notes[id], hops=hop, link=link) for id, (hop, link) in reached.items() if id in notes
            and notes[id].quarantined is None]  # fmt: skip
