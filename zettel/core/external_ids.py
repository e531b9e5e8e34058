"""Resolves the callers' own ids of events to notes and events."""

from __future__ import annotations

import re

from zettel.core.arguments import require_text_id
from zettel.core.identity import external_id_bytes, identity_of, owned
from zettel.errors import NotFound
from zettel.model import EventRecord, Scope
from zettel.ports import GraphStore, LookupQuery

_OWN_ID = re.compile(r"[a-z]_[0-9a-f]{20}")


async def note_id_of(store: GraphStore, scope: Scope, id: str) -> str:
    """Return ``id`` if zettel made it, else the head note of the event with this external id. Raises ``NotFound``."""
    event = await _event_of(store, scope, id)
    return id if event is None else event[1][0]


async def event_id_of(store: GraphStore, scope: Scope, id: str) -> str:
    """Return ``id`` if zettel made it, else the id of the event with this external id. Raises ``NotFound``."""
    event = await _event_of(store, scope, id)
    return id if event is None else event[0].event_id


async def _event_of(store: GraphStore, scope: Scope, id: str) -> tuple[EventRecord, tuple[str, ...]] | None:
    require_text_id(scope, id)
    if _OWN_ID.fullmatch(id):
        return None
    secret = (await store.state(scope)).secret
    # The principal's own event with this id, else the shared one.
    keys = dict.fromkeys((owned(external_id_bytes(id)), external_id_bytes(id)))
    identities = tuple(identity_of(key, secret) for key in keys)
    found = await store.lookup(scope, LookupQuery(identities=identities))
    for identity in identities:
        if identity in found.events and found.events[identity][1]:
            return found.events[identity]
    if id.startswith(("n_", "e_")):  # the caller reports an unknown id of zettel's own form
        return None
    raise NotFound(scope, [id])
