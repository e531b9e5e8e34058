"""Entities: persons, organisations, places and things that notes name."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from zettel.model.base import Frozen, Moment
from zettel.model.notes import Note

EntityKind: TypeAlias = Literal["person", "organisation", "place", "thing"]
ENTITY_KINDS: tuple[EntityKind, ...] = get_args(EntityKind)


class Entity(Frozen):
    """A person, an organisation, a place or a thing, with its names and the number of notes that name it.

    ``name`` is the name in most notes, ``aliases`` are the others. ``kind`` is None if no text shows it.
    """

    name: str
    kind: EntityKind | None = None
    aliases: tuple[str, ...] = ()
    notes: int = 0


class EntityPage(Frozen):
    """A page of entities, most named first. ``cursor`` continues with the next page; None on the last one."""

    entities: tuple[Entity, ...]
    cursor: str | None = None


class NamesMerged(Frozen):
    """Why two names are one entity: ``by`` a person ("user"), a model ("reflect") or a rule, and the ``reason``.

    ``note`` is the note that records the decision; ``memory.revert(note, 1)`` reverts it. A rule decides at each read
    and has none: ``split_entity`` overrules it. ``sources`` are the notes that state it.
    """

    names: tuple[str, str]
    by: Literal["user", "reflect", "rule"]
    reason: str = ""
    note: str | None = None
    sources: tuple[str, ...] = ()


class EntityFact(Frozen):
    """A fact about an entity: the sentence ``text`` of ``note``, its attribute and value.

    It is true from ``valid_from`` until ``valid_to`` (None: unknown); ``current`` is False if a later note replaced it.
    """

    note: str
    attribute: str
    value: str
    text: str
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    current: bool = True


class EntityNeighbor(Frozen):
    """An entity that the same notes name; ``count`` of them, with their ids in order of arrival."""

    name: str
    kind: EntityKind | None = None
    count: int = 0
    notes: tuple[str, ...] = ()


class EntityDetails(Entity):
    """An entity with its merged names, its facts, its timeline (dated notes, oldest first) and its neighbours."""

    merges: tuple[NamesMerged, ...] = ()
    facts: tuple[EntityFact, ...] = ()
    timeline: tuple[Note, ...] = ()
    neighbors: tuple[EntityNeighbor, ...] = ()
