"""Pairs of notes that contradict each other, as long as nothing has replaced either of them."""

from __future__ import annotations

from zettel.model import Conflict, LinkType, Scope
from zettel.pages import pages
from zettel.ports import GraphStore

PAGE = 500
"""Notes whose links are read at once."""


async def conflicts(store: GraphStore, scope: Scope) -> list[Conflict]:
    """Every pair that is linked by CONTRADICTS and still undecided, in the order of arrival of who says otherwise."""
    found: list[Conflict] = []
    async for page in pages(store, scope, PAGE):
        notes = {note.id: note for note in page}
        links = await store.links(scope, sorted(notes))
        made = [link for link in links if link.type is LinkType.CONTRADICTS and link.source in notes]
        others = await store.notes(scope, sorted({link.target for link in made}))
        made = [link for link in made if link.target in others]  # one may have been deleted meanwhile
        for link in sorted(made, key=lambda link: (notes[link.source].seq, others[link.target].seq)):
            note, other = notes[link.source], others[link.target]
            if note.valid_to is None and other.valid_to is None and not other.archived:
                found.append(Conflict(note=note, other=other, reason=link.reason, recorded_at=link.recorded_at))
    return found
