"""Detects changes of fact: notes that supersede or contradict older ones.

Two notes must state facts with the same owner, attribute and thing, and values that exclude each other ("I live in
Porto.", "We moved to Braga."). A wrong SUPERSEDES hides the truth, so a doubtful case gets CONTRADICTS if both notes
claim the present, or no link. All functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from zettel.core.authority import may_replace
from zettel.evolve.facts import Denial, Fact, denials, facts
from zettel.evolve.values import are_known_towns, exclude, share
from zettel.model import Link, LinkType, Note

CHANGE_WEIGHT = 0.9
"""The weight of these links: the newer note is nearly as good an answer as the older one."""
LEAST_VALUE = 2
"""The fewest characters of a value that a denial can name."""


class FactChange(NamedTuple):
    """The link type from a later note to an earlier one, SUPERSEDES or CONTRADICTS, and a readable reason.

    ``effective`` is the time from which the later note is true, if it announces the change.
    """

    type: LinkType
    reason: str
    effective: datetime | None = None


class _Statement(NamedTuple):
    fact: Fact
    note: Note


def in_time(first: Note, second: Note) -> tuple[Note, Note, bool]:
    """Return the earlier note, the later note, and whether this is their order by date."""
    if first.valid_from and second.valid_from and first.valid_from != second.valid_from:
        return (first, second, True) if first.valid_from < second.valid_from else (second, first, True)
    return (first, second, False) if first.seq < second.seq else (second, first, False)


def change_of(earlier: Note, later: Note, dated: bool) -> FactChange | None:
    """Return how the later note changes the earlier one; ``dated``: their dates give the order.

    Example: "I live in Porto." in May and "We moved to Braga." in July give SUPERSEDES.
    """
    if set(earlier.event_ids) & set(later.event_ids):
        return None
    changes = [
        change
        for new in facts(later)
        for old in facts(earlier)
        if (change := _change(_Statement(old, earlier), _Statement(new, later), dated)) is not None
    ]
    changes += [
        FactChange(LinkType.SUPERSEDES, f"says that this ended: {old.value.text}")
        for old in facts(earlier)
        if any(_is_denied(old, earlier, denial, later) for denial in denials(later))
    ]
    return min(changes, key=lambda change: change.type is not LinkType.SUPERSEDES, default=None)


def announced(note: Note) -> datetime | None:
    """Return the future time from which a note's change is true: 1 January for "goes up to 90 euros from January"."""
    return next((fact.effective for fact in facts(note) if fact.marked and fact.effective), None)


def replaces(new: Fact, later: Note, old: Fact, earlier: Note) -> bool:
    """Return whether a fact of a later note certainly replaces, or ends, one of an earlier note."""
    dated = in_time(earlier, later)[2]
    change = _change(_Statement(old, earlier), _Statement(new, later), dated)
    return change is not None and change.type is LinkType.SUPERSEDES and may_replace(later, earlier)


def change_links(note: Note, others: Iterable[Note], recorded_at: datetime) -> tuple[Link, ...]:
    """Return the links between a note and other notes that arrived before it.

    Links lead from later to earlier notes. If several other notes are later, only the first of them replaces the note.
    """
    links: list[Link] = []
    successor: tuple[Note, FactChange] | None = None
    for other in others:
        earlier, later, dated = in_time(other, note)
        change = change_of(earlier, later, dated)
        if change is None:
            continue
        if later is note:
            links.append(_link(note, other, change, recorded_at))
        elif successor is None or in_time(other, successor[0])[0] is other:
            successor = (other, change)
    if successor is not None:
        links.append(_link(successor[0], note, successor[1], recorded_at))
    return tuple(links)


def _link(source: Note, target: Note, change: FactChange, recorded_at: datetime) -> Link:
    return Link(
        source=source.id,
        target=target.id,
        type=change.type,
        weight=CHANGE_WEIGHT,
        reason=change.reason,
        recorded_at=recorded_at,
    )


def _change(old: _Statement, new: _Statement, dated: bool) -> FactChange | None:
    before, after = old.fact, new.fact
    if not _same_matter(old, new) or before.sense == "ends" or after.adds or before.temporary or after.temporary:
        return None
    if after.sense == "ends":
        ended = share(before.value, after.value)
        return FactChange(LinkType.SUPERSEDES, f"says that this ended: {before.value.text}") if ended else None
    if after.exclusive == "never" or not exclude(before.value, after.value) or _differ_in_qualifiers(before, after):
        return None
    subject = _wording(after)
    if _is_certain(old, new, dated):
        reason = f"says that {subject} changed: {before.value.text} \u2192 {after.value.text}"
        return FactChange(LinkType.SUPERSEDES, reason, after.effective)
    is_known = after.exclusive == "known" and are_known_towns(before.value, after.value)
    if is_known or after.exclusive in ("always", "dated"):
        reason = f"says otherwise of {subject}: {before.value.text} / {after.value.text}"
        return FactChange(LinkType.CONTRADICTS, reason)
    return None


def _is_denied(old: Fact, earlier: Note, denial: Denial, later: Note) -> bool:
    """Return whether a sentence names a fact's value and owner or thing, and says that it is no longer so."""
    value = old.value.text.lower().strip()
    if old.sense == "ends" or len(value) < LEAST_VALUE or not re.search(rf"\W{re.escape(value)}\W", denial.text):
        return False
    person = old.owner.person
    is_own = earlier.speaker == later.speaker and denial.in_first_person and person <= _words(earlier.speaker)
    names = bool(person) and (is_own or any(f" {name}" in denial.text for name in person))
    if old.thing:
        return old.thing <= denial.tokens and (names or not person)
    return names and set(old.owner.path) <= denial.tokens


def _words(speaker: str | None) -> frozenset[str]:
    return frozenset((speaker or "").lower().split()) or frozenset({"user"})


def _same_matter(old: _Statement, new: _Statement) -> bool:
    """Return whether two facts have the same owner, attribute and thing."""
    before, after = old.fact, new.fact
    if before.attribute != after.attribute or before.thing != after.thing or before.owner.path != after.owner.path:
        return False
    persons = before.owner.person, after.owner.person
    if all(persons):
        return not persons[0].isdisjoint(persons[1])
    return not any(persons) or old.note.speaker == new.note.speaker  # "my rent", "the rent"


def _is_certain(old: _Statement, new: _Statement, dated: bool) -> bool:
    """Return whether the later statement certainly replaces the earlier one."""
    before, after = old.fact, new.fact
    if after.exclusive == "marked":
        return after.marked
    if after.marked or after.corrects:
        return True
    if after.exclusive == "known" and not are_known_towns(before.value, after.value):
        return False  # "Berlin", then "Neukölln"
    return dated and not _in_one_conversation(old.note, new.note) and old.note.speaker == new.note.speaker


def _in_one_conversation(earlier: Note, later: Note) -> bool:
    """Return whether both notes have the same session and day. There, people use a word of change for a change."""
    days = [note.occurred_at and note.occurred_at.date() for note in (earlier, later)]
    return earlier.session == later.session and days[0] == days[1]


def _differ_in_qualifiers(before: Fact, after: Fact) -> bool:
    """Return whether a phrase qualifies only one value, or both differently: "12 euros", "8 euros for children"."""
    return bool(before.thing) and before.attribute == "value" and before.qualifiers != after.qualifiers


def _wording(fact: Fact) -> str:
    """Return "home", or "user's wife's work"."""
    owner = "'s ".join([" ".join(sorted(fact.owner.person)).title(), *fact.owner.path])
    what = " ".join(sorted(fact.thing)) if fact.thing else fact.attribute
    return f"{owner}'s {what}" if owner.strip() else what
