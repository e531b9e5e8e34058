"""Operations that add, change and delete notes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from zettel.core.add_facts import fact_fields
from zettel.core.arguments import (
    Time,
    checked,
    head_of,
    link_type_of,
    moment_of,
    names_of,
    require_name,
    require_reason,
    require_storable,
    require_text,
    whole_number,
)
from zettel.core.authority import require_full_trust
from zettel.core.changes import DELETED
from zettel.core.entity_decisions import decisions_of
from zettel.core.entity_notes import decision_event
from zettel.core.external_ids import event_id_of, note_id_of
from zettel.core.identity import Ordinals
from zettel.core.privacy import report
from zettel.errors import InvalidInput
from zettel.local.local_memory import LocalMemory
from zettel.model import Event, Link, LinkKey, LinkType, Note, OnConflict, Remembered, Scope
from zettel.text.tokens import phrase_key

ERASE_PAGE = 500
"""Events deleted in one transaction when a whole session or file is deleted."""
PURGE_PAUSES = (0.0, 0.05, 0.2, 0.75)
"""Seconds between attempts of ``delete_scope`` to purge pages that other readers use; then a job does it."""


async def add_many_report(
    memory: LocalMemory, events: Sequence[Event], *, on_conflict: OnConflict = "error", scope: Scope | None = None
) -> list[Remembered]:
    engine, scope = memory.use(scope)
    outcomes = await engine.remember(scope, events, on_conflict, Ordinals())
    kinds = dict.fromkeys(kind for outcome in outcomes for kind in outcome.secrets)
    report(engine.guard, tuple(kinds))
    return outcomes


async def add_fact(
    memory: LocalMemory,
    subject: str,
    attribute: str,
    value: str,
    *,
    valid_from: Time | None = None,
    valid_to: Time | None = None,
    id: str | None = None,
    session: str | None = None,
    sources: Iterable[str] = (),
    scope: Scope | None = None,
) -> str:
    engine, scope = memory.use(scope)
    for name, text in (("subject", subject), ("attribute", attribute), ("value", value)):
        require_text(name, text)
        if not phrase_key(text):
            raise InvalidInput(f"{name} is empty: a fact has a subject, an attribute and a value")
    start, end = moment_of("valid_from", valid_from), moment_of("valid_to", valid_to)
    if start is not None and end is not None and end < start:
        raise InvalidInput(f"valid_to={valid_to} is before valid_from={valid_from}")
    source_ids = [await note_id_of(engine.store, scope, source) for source in names_of("sources", sources)]
    # The key by which facts are compared has the words of both in another form, in which no pattern finds a secret.
    subject, attribute = engine.guard.text("subject", subject), engine.guard.text("attribute", attribute)
    event = checked(fact_fields(subject, attribute, value, start, id, session))
    (outcome,) = await engine.remember(scope, [event], "error", Ordinals())
    note_id = head_of(event, outcome)
    await engine.facts.write(scope, note_id, end, source_ids)
    engine.loop.wake()
    return note_id


async def merge_entities(
    memory: LocalMemory, name: str, other: str, *, reason: str = "", scope: Scope | None = None
) -> Note:
    return await _decide(memory, name, other, True, reason, scope)


async def split_entity(
    memory: LocalMemory, name: str, other: str, *, reason: str = "", scope: Scope | None = None
) -> Note:
    return await _decide(memory, name, other, False, reason, scope)


async def _decide(memory: LocalMemory, name: str, other: str, same: bool, reason: str, scope: Scope | None) -> Note:
    """Record a decision about two names, unless it was the last one about them."""
    engine, scope = memory.use(scope)
    for argument, text in (("name", name), ("other", other)):
        require_text(argument, text)
        require_name(argument, text)
        if not phrase_key(text):
            raise InvalidInput(f"{argument} is empty: write a name")
    if phrase_key(name) == phrase_key(other):
        raise InvalidInput(f"{name!r} and {other!r} are the same name: pass two names")
    require_reason(reason)
    (await engine.entities.index(scope)).group_of(name, scope)  # raises NotFound for a name that no note contains
    name, other = engine.guard.text("name", name.strip()), engine.guard.text("other", other.strip())
    reason = engine.guard.text("reason", reason)
    keys = {phrase_key(name), phrase_key(other)}
    alike = [each for each in await decisions_of(engine.store, scope) if set(each.keys) == keys and each.by == "user"]
    if alike and alike[-1].same == same:
        return (await engine.store.notes(scope, [alike[-1].note]))[alike[-1].note]
    event = checked(decision_event(name, other, same))
    (outcome,) = await engine.remember(scope, [event], "error", Ordinals())
    note = await engine.deciding.decide(scope, head_of(event, outcome), name, other, same, reason)
    engine.loop.wake()
    return note


async def update(memory: LocalMemory, id: str, *, scope: Scope | None = None, fields: Mapping[str, Any]) -> Note:
    engine, scope, id = await memory.locate(scope, id)
    note = await engine.editing.update(scope, id, fields)
    if "expires_at" in fields:  # of an event all notes expire together
        related = await engine.store.notes(scope, await engine.store.notes_of(scope, note.event_ids))
        for other in related.values():
            if other.event_ids == note.event_ids and other.expires_at != note.expires_at:
                await engine.editing.update(scope, other.id, {"expires_at": note.expires_at})
    engine.loop.wake()
    return note


async def link(
    memory: LocalMemory,
    source: str,
    target: str,
    type: LinkType | str = LinkType.RELATES,
    *,
    reason: str = "",
    scope: Scope | None = None,
) -> Link:
    from zettel.core.edit_links import LINKED_BY_HAND

    engine, scope, source = await memory.locate(scope, source)
    target = await note_id_of(engine.store, scope, target)
    require_reason(reason)
    reason = engine.guard.text("reason", reason)
    return await engine.linking.link(scope, LinkKey(source, target, link_type_of(type, LINKED_BY_HAND)), reason)


async def unlink(
    memory: LocalMemory,
    source: str,
    target: str,
    type: LinkType | str = LinkType.RELATES,
    *,
    scope: Scope | None = None,
) -> Link:
    from zettel.core.edit_links import LINKED_BY_HAND

    engine, scope, source = await memory.locate(scope, source)
    target = await note_id_of(engine.store, scope, target)
    return await engine.linking.unlink(scope, LinkKey(source, target, link_type_of(type, LINKED_BY_HAND)))


async def resolve(
    memory: LocalMemory, keep: str, over: str, *, reason: str = "", scope: Scope | None = None
) -> Link:  # fmt: skip
    engine, scope, keep = await memory.locate(scope, keep)
    over = await note_id_of(engine.store, scope, over)
    require_reason(reason)
    reason = engine.guard.text("reason", reason)
    return await engine.linking.resolve(scope, keep, over, reason)


async def revert(memory: LocalMemory, id: str, version: int, *, scope: Scope | None = None) -> Note:
    engine, scope, id = await memory.locate(scope, id)
    note = await engine.editing.revert(scope, id, whole_number("version", version))
    engine.loop.wake()
    return note


async def revert_effects(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> list[Note]:
    engine, scope, id = await memory.locate(scope, id)
    changed = await engine.taking_back.revert_effects(scope, id)
    engine.loop.wake()
    return changed


async def archive(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> Note:
    engine, scope, id = await memory.locate(scope, id)
    return await engine.archiving.archive(scope, id)


async def unarchive(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> Note:
    engine, scope, id = await memory.locate(scope, id)
    note = await engine.archiving.unarchive(scope, id)
    engine.searcher.decayed.forget(scope)
    engine.loop.wake()
    return note


async def confirm(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> list[Note]:
    engine, scope, id = await memory.locate(scope, id)
    changed = await engine.editing.confirm(scope, id)
    engine.loop.wake()
    return changed


async def quarantine(
    memory: LocalMemory,
    id: str | None = None,
    reason: str = "",
    *,
    principal: str | None = None,
    scope: Scope | None = None,
) -> list[Note]:
    require_reason(reason)
    if id is not None:
        engine, scope, id = await memory.locate(scope, id)
        changed = await engine.quarantining.quarantine(scope, id, engine.guard.text("reason", reason))
    else:
        engine, scope = memory.use(scope)
        reason = engine.guard.text("reason", reason)
        changed = await engine.quarantining.quarantine_principal(scope, principal or "", reason)
    engine.loop.wake()
    return changed


async def release(
    memory: LocalMemory, id: str | None = None, *, principal: str | None = None, scope: Scope | None = None
) -> list[Note]:
    if id is not None:
        engine, scope, id = await memory.locate(scope, id)
        changed = await engine.quarantining.release(scope, id)
    else:
        engine, scope = memory.use(scope)
        changed = await engine.quarantining.release_principal(scope, principal or "")
    engine.loop.wake()
    return changed


async def delete(
    memory: LocalMemory,
    id: str | None = None,
    *,
    source: str | None = None,
    session: str | None = None,
    scope: Scope | None = None,
) -> int:
    engine, scope = memory.use(scope)
    if id is not None:
        deleted = await engine.erasing.erase(scope, [await event_id_of(engine.store, scope, id)])
    else:
        deleted = 0
        require_storable("source", source)
        require_storable("session", session)
        for file in (None,) if source is None else dict.fromkeys((source, str(PurePath(source)))):
            # By event, so that one whose newer wording came from elsewhere is found too.
            while events := await engine.store.events_from(scope, file, session, ERASE_PAGE):
                # Somebody else may be at the same ones.
                deleted += await engine.erasing.erase(scope, events, missing_ok=True)
    engine.loop.wake()
    return deleted


async def delete_scope(memory: LocalMemory, *, scope: Scope | None = None) -> int:
    engine, scope = memory.use(scope)
    require_full_trust("deletes a scope")
    async with engine.commits.announced(scope, DELETED):
        deleted = await engine.store.drop_scope(scope)
    for pause in PURGE_PAUSES:
        await asyncio.sleep(pause)
        if await engine.store.purge():
            return deleted
    engine.loop.wake()
    return deleted
