"""Detects changes of fact: notes that supersede or contradict older ones.

Two notes must state facts with the same owner, attribute and thing, and values that exclude each other ("I live in
Porto.", "We moved to Braga."). A wrong SUPERSEDES hides the truth, so a doubtful case gets CONTRADICTS if both notes
claim the present, or no link. An older note that also states something else gets UPDATES, and stays valid. All
functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from zettel.core.authority import may_replace
from zettel.model import Link, LinkType, Note
from zettel.text.asserted import asserted
from zettel.text.facts import ANY, Fact, belongings, endings, facts
from zettel.text.tokens import tokenize
from zettel.text.values import exclude, is_named, is_time, is_town

CHANGE_WEIGHT = 0.9
"""The weight of these links: the newer note is nearly as good an answer as the older one."""

REASON = "says that "
"""The beginning of the reasons of links that replace."""
DOSE = "dose"
"""The attribute whose thing may end: a medicine."""
SHORT = 400
"""The most characters of a note that is superseded because something ended that it only mentions. A longer one contains
more than that."""
MIN_WORDS = 4
"""The fewest words of another sentence that keeps a note valid."""
_NAMED = re.compile(r"\d|(?<=[\w,;] )[A-Z][a-z]")
"""A number, or a name inside a sentence."""


class FactChange(NamedTuple):
    """The link type from a later note to an earlier one, SUPERSEDES, UPDATES or CONTRADICTS, and a readable reason.

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

    Example: "I live in Porto." in May and "We moved to Braga." in July give SUPERSEDES, and "I live in Porto and work
    at Apple." in May would get UPDATES.
    """
    if set(earlier.event_ids) & set(later.event_ids):
        return None
    ends = endings(later)
    compared = [(old, new) for old in facts(earlier) for new in (*facts(later), *ends)]
    if ends and len(earlier.content) <= SHORT:
        ended = [own.value for own in endings(earlier)]
        had = [old for old in belongings(earlier) if not any(is_named(old.value, value) for value in ended)]
        compared += [(old, new) for old in had for new in ends]
    changes = [
        (change, old)
        for old, new in compared
        if (change := _change(_Statement(old, earlier), _Statement(new, later), dated)) is not None
    ]
    replaced = [old for change, old in changes if change.type is LinkType.SUPERSEDES]
    change = min((change for change, _ in changes), key=lambda each: each.type is not LinkType.SUPERSEDES, default=None)
    if change is not None and change.type is LinkType.SUPERSEDES and _states_more(earlier, replaced):
        return change._replace(type=LinkType.UPDATES)
    return change


def replaced_part(earlier: Note, later: Note) -> str:
    """Return the clauses of an earlier note whose facts a later note certainly replaces; "" for none."""
    new = (*facts(later), *endings(later))
    old = dict.fromkeys(old for old in facts(earlier) if any(replaces(each, later, old, earlier) for each in new))
    return " ".join(dict.fromkeys(fact.text for fact in old))


def _states_more(note: Note, replaced: Sequence[Fact]) -> bool:
    """Return whether a note states more than these facts: another fact, sentence, name or number."""
    values = frozenset[tuple[str, str]]().union(*(fact.value.facets for fact in replaced))
    if any(values.isdisjoint(fact.value.facets) for fact in facts(note)):
        return True
    language, _, sentences = asserted(note.content)
    for sentence in sentences:
        stated = [fact for fact in replaced if fact.text in sentence]
        if not stated and len(sentence.split()) >= MIN_WORDS:
            return True
        for fact in stated:
            beside = language and language.beside.search(fact.text.replace(fact.value.text, ""))
            sentence = sentence.replace(fact.text, beside.group() if beside else "")
        if _NAMED.search(sentence):
            return True
    return False


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
    if before.sense == "ends" or after.temporary or not _have_one_owner(old, new):
        return None
    if after.sense == "ends":
        reason = f"{REASON}this ended: {before.value.text}"
        return FactChange(LinkType.SUPERSEDES, reason, after.effective) if _ends(before, after) else None
    if before.temporary:
        return None
    if before.attribute != after.attribute or after.adds or not _have_one_thing(before, after):
        return None
    if after.exclusive == "never" or not exclude(before.value, after.value):
        return None
    if not after.marked and before.expires and new.note.occurred_at and before.expires < new.note.occurred_at:
        return None  # another appointment of the same name
    subject = _wording(after)
    if _is_certain(old, new, dated):
        reason = f"{REASON}{subject} changed: {before.value.text} \u2192 {after.value.text}"
        return FactChange(LinkType.SUPERSEDES, reason, after.effective)
    if after.exclusive == "dated" or (after.exclusive == "known" and is_town(before.value) and is_town(after.value)):
        reason = f"says otherwise of {subject}: {before.value.text} / {after.value.text}"
        return FactChange(LinkType.CONTRADICTS, reason)
    return None


def _have_one_owner(old: _Statement, new: _Statement) -> bool:
    before, after = old.fact.owner, new.fact.owner
    if before.path != after.path:
        return False
    if before.relation and after.relation and before.relation != after.relation:
        return False  # "my sister Laura", "my cousin Laura"
    if before.person and after.person:
        return not before.person.isdisjoint(after.person)
    return not (before.person or after.person) or old.note.speaker == new.note.speaker  # "my rent", "the rent"


def _ends(before: Fact, after: Fact) -> bool:
    """Return whether the later fact ends the earlier one."""
    if after.attribute == ANY:
        return is_named(before.value, after.value) or (before.attribute == DOSE and _is_thing(before, after))
    if before.attribute != after.attribute or (after.thing and before.thing != after.thing):
        return False
    if before.thing and before.value.facets <= after.value.facets:  # "Helen Barlow is not my boss any more"
        return True
    return after.value.facets <= before.value.facets


def _is_thing(before: Fact, after: Fact) -> bool:
    """Return whether the later fact ends the thing of the earlier one: "taken off ramipril", "ramipril 5 mg"."""
    keys = frozenset(key for _, key in after.value.facets)
    return bool(keys) and keys <= before.thing


def _have_one_thing(before: Fact, after: Fact) -> bool:
    """Return whether two facts concern one thing, described alike: not "12 euros" and "8 euros for children"."""
    if not before.thing or not after.thing:
        is_reported = after.marked and not after.thing
        return is_reported or (before.thing == after.thing and before.qualifiers == after.qualifiers)
    if before.thing | before.qualifiers == after.thing | after.qualifiers:
        return True
    is_moved = after.sense == "changes" and is_time(after.value) and not after.qualifiers
    return is_moved and before.thing == after.thing


def _is_certain(old: _Statement, new: _Statement, dated: bool) -> bool:
    """Return whether the later statement certainly replaces the earlier one."""
    before, after = old.fact, new.fact
    if after.marked or after.corrects:
        is_within = is_town(before.value) and not is_town(after.value)  # "Berlin", then "Neuk\u00f6lln now"
        return after.exclusive != "known" or after.sense == "changes" or not is_within
    if "marked" in (before.exclusive, after.exclusive):
        return False
    if after.exclusive == "known" and not (is_town(before.value) and is_town(after.value)):
        return False
    return dated and not _in_one_conversation(old.note, new.note) and old.note.speaker == new.note.speaker


def _in_one_conversation(earlier: Note, later: Note) -> bool:
    """Return whether both notes have the same session and day. There, people use a word of change for a change."""
    days = [note.occurred_at and note.occurred_at.date() for note in (earlier, later)]
    return earlier.session == later.session and days[0] == days[1]


def _wording(fact: Fact) -> str:
    """Return "home", or "user's wife's work"."""
    owner = "'s ".join([" ".join(sorted(fact.owner.person)).title(), *fact.owner.path])
    words = [word.strip(".,;:!?\"'") for word in fact.text.split()]
    named = dict.fromkeys(word for word in words if not fact.thing.isdisjoint(tokenize(word)))
    what = " ".join(named) if fact.thing else fact.attribute
    return f"{owner}'s {what}" if owner.strip() else what
