"""Detects changes of fact: notes that supersede or contradict older ones.

Both notes must make a claim about the same subject, in the same frame, with different values. Frames are home, work,
favourites, roles, responsibilities, the day, price or number of a thing, and stated changes. A wrong SUPERSEDES hides
the truth, so doubtful cases get CONTRADICTS: claims that may concern two things, and differences within one
conversation without a word of change. All functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from zettel.evolve.claims import POSSESSIVE, Claim, are_comparable, claims, rarity
from zettel.evolve.distinct_claims import (
    adds_to_earlier,
    concern_two_things,
    is_only_one_qualified,
    recur_at_different_times,
)
from zettel.model import Link, LinkType, Note
from zettel.text.statements import Matter
from zettel.text.tokens import tokenize

CHANGE_WEIGHT = 0.9
"""The weight of these links: the newer note is nearly as good an answer as the older one."""
MIN_SHARED = 0.4
"""The lowest share of the shorter topic, by rarity, that the other topic contains."""
_POSSESSED = re.compile(r"\b(\w+)'s (?:\w+ ){0,2}\w+")
_DENIES = re.compile(
    r"\b(?:no longer|(?:any|no) ?more|any ?longer|instead of|switched (?:from|to)|swapped|used to\b.*\b(?:but|now"
    r"|these days)|(?:have|has|'ve|'s) stopped)\b"
)
_CORRECTS = re.compile(r"\b(?:actually|correction|sorry|i was wrong|i mean|i meant|my mistake|scratch that)\b")
"""Words of a self-correction."""
_LEAVES = re.compile(r"\b(?:quit|gave up|given up|handed in|left|goodbye|moved from|resigned)\b")
ROLES = frozenset(
    tokenize(
        "boss manager supervisor mentor tutor coach trainer teacher instructor doctor dentist therapist physician"
        " vet lawyer"
        " accountant flatmate roommate housemate partner husband wife spouse fiance fiancé fiancée girlfriend boyfriend"
        " assistant landlord landlady neighbour neighbor captain chair chairman president leader deskmate"
    )
)
"""Tokens of roles that only one person has at a time."""
_NUMBERED = frozenset(
    tokenize("number code pin password space seat room desk extension account version limit timeout size port quota")
)
"""Things that a number identifies."""
_IS_STATE = re.compile(r"(?:\b(?:is|are|be|now|to|at|says|reads|from)|[:=])\s+\d|\d\S*(?: \w+)? as\b")
"""A number that describes the state of a thing."""
_HAPPENED = re.compile(r"\b(?:\w{3,}ed|met|ran|saw|took|went|came|ate|had|won|made|sat|slept|rode|drove|flew|read)\b")
_STATES = re.compile(r"\b(?:is|are|be|am|now|has|have|to|from|until)\b|'(?:s|re|m)\b|[:=]")
"""Words that turn a single event with a number into a state."""
_EVENT = frozenset(tokenize("found collected dropped lost won lent borrowed gave owe owes bet fine spent stole raffle"))
"""Single events with money, which are not prices."""
_BEST = frozenset(tokenize("favourite favorite best prefer top choice perfect crown love fond mad like swear"))


class _Difference(NamedTuple):
    """A subject with its old and its new value."""

    subject: str
    before: str
    after: str


class FactChange(NamedTuple):
    """The link type from a later note to an earlier one, SUPERSEDES or CONTRADICTS, and a readable reason."""

    type: LinkType
    reason: str


def in_time(first: Note, second: Note) -> tuple[Note, Note, bool]:
    """Return the earlier note, the later note, and whether this is their order by date."""
    if first.valid_from and second.valid_from and first.valid_from != second.valid_from:
        return (first, second, True) if first.valid_from < second.valid_from else (second, first, True)
    return (first, second, False) if first.seq < second.seq else (second, first, False)


def change_of(earlier: Note, later: Note, dated: bool) -> FactChange | None:
    """Return how the later note changes the earlier one; ``dated``: their dates give the order."""
    if set(earlier.event_ids) & set(later.event_ids):
        return None
    # Within a conversation, people use a word of correction for a change.
    is_unmarked = _in_one_conversation(earlier, later) and not _CORRECTS.search(later.content.lower())
    for new in claims(later):
        for old in claims(earlier):
            if old.people.isdisjoint(new.people) and old.topic.isdisjoint(new.topic):
                continue
            difference = _first_difference(old, new)
            if difference is not None:
                subject, before, after = difference
                if new.statement.changed or (dated and not is_unmarked and not is_only_one_qualified(old, new)):
                    return FactChange(LinkType.SUPERSEDES, f"says that {subject} changed: {before} \u2192 {after}")
                return FactChange(LinkType.CONTRADICTS, f"says otherwise of {subject}: {before} / {after}")
    return None


def _in_one_conversation(earlier: Note, later: Note) -> bool:
    """Return whether both notes have the same session and day."""
    days = [note.valid_from and note.valid_from.date() for note in (earlier, later)]
    return earlier.session == later.session and days[0] == days[1]


def change_links(note: Note, others: Iterable[Note], recorded_at: datetime) -> tuple[Link, ...]:
    """Return the links between a note and other notes that arrived before it.

    Links lead from later to earlier notes. If several other notes are later, only the first of them replaces the note.
    """
    links: list[Link] = []
    successor: tuple[Note, FactChange] | None = None
    for other in others:
        if not are_comparable(note, other):
            continue
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


# ------------------------------------------------------------------------------------------------------------- frames


def _first_difference(old: Claim, new: Claim) -> _Difference | None:
    """Return the difference in the first frame in which the claims differ."""
    if adds_to_earlier(new):
        return None
    return next((difference for frame in _FRAMES if (difference := frame(old, new)) is not None), None)


def _place_change(old: Claim, new: Claim) -> _Difference | None:
    """Compare home or work: the same person and field, a different name after a preposition."""
    people = _common_persons(old, new)
    if not people or recur_at_different_times(old, new):
        return None
    for matter, name in ((Matter.HOME, "home"), (Matter.WORK, "job")):
        if not (old.statement.matter & matter and new.statement.matter & matter):
            continue
        is_home = matter is Matter.HOME
        first, second = (claim.statement.located if is_home else claim.statement.posts for claim in (old, new))
        before, after = _different_names(first, second, people)
        if before and after:
            return _Difference(f"{_display_name(people)}'s {name}", before, after)
    return None


def _value_change(old: Claim, new: Claim) -> _Difference | None:
    """Compare the price, day or number of a thing that both claims name."""
    shared = _common_topic(old, new)
    if not shared or not _may_share_person(old, new) or concern_two_things(old, new, shared):
        return None
    first, second = old.statement, new.statement
    if first.amounts and second.amounts:
        before, after = first.amounts, second.amounts
        fits = _EVENT.isdisjoint(first.tokens | second.tokens)
    else:
        have_days = bool(first.days and second.days)
        before, after = (first.days, second.days) if have_days else (first.numbers, second.numbers)
        # "my exam" is not "my oral exam"
        differ = all(claim.statement.definite & claim.topic - shared for claim in (old, new))
        fits = bool(shared & (first.definite | second.definite)) and not differ
        if not have_days:  # a number in a past event is not a state
            lows = first.low, second.low
            fits = fits and (bool(shared & _NUMBERED) or all(map(_IS_STATE.search, lows)))
            fits = fits and not all(_HAPPENED.search(low) and not _STATES.search(low) for low in lows)
    if not before or not fits or after <= before:
        return None
    return _Difference(_wording(shared, old), ", ".join(sorted(before)), ", ".join(sorted(after - before)))


def _role_change(old: Claim, new: Claim) -> _Difference | None:
    """Compare the person in a role."""
    shared = _common_topic(old, new)
    owner = _owners(old) & _owners(new) if shared & ROLES else frozenset()
    if not owner or concern_two_things(old, new, shared):
        return None
    before, after = _different_names(_names(old), _names(new), owner)
    if not before or not after:
        return None
    return _Difference(f"{_display_name(owner)}'s {_wording(shared, old)}", before, after)


def _owners(claim: Claim) -> frozenset[str]:
    """Return the owner of a role: Ann in "Ann's boss" and in Ann's "my boss"; else all people of the claim."""
    possessors = frozenset(name.lower() for name in _POSSESSED.findall(claim.statement.text))
    if possessors:
        return possessors
    return claim.speaker if POSSESSIVE.search(claim.statement.low) else claim.people


def _favourite_change(old: Claim, new: Claim) -> _Difference | None:
    """Compare a person's favourite thing of a kind."""
    people = _common_people(old, new)
    if not people or not (old.statement.matter & new.statement.matter & Matter.LIKING):
        return None
    shared = _common_topic(old, new) - _BEST
    before, after = old.topic - new.topic - _BEST, new.topic - old.topic - _BEST
    names = _different_names(_names(old), _names(new), people)
    wordings = names[0] or _wording(before, old), names[1] or _wording(after, new)
    if not shared or not all(wordings) or not old.statement.tokens & new.statement.tokens & _BEST:
        return None
    return _Difference(f"{_display_name(people)}'s favourite {_wording(shared, old)}", *wordings)


def _responsibility_change(old: Claim, new: Claim) -> _Difference | None:
    """Compare the people who are responsible for a thing."""
    shared = _common_topic(old, new)
    if not shared or not old.statement.matter & Matter.CARE:
        return None
    if not (new.statement.matter & Matter.CARE or new.statement.changed):
        return None
    if not shared & old.statement.definite & new.statement.definite or concern_two_things(old, new, shared):
        return None
    if _has_value(old) or _has_value(new):
        return None
    if not old.people or not new.people or new.people <= old.people:
        return None
    subject = f"who looks after {_wording(shared, old)}"
    return _Difference(subject, _display_name(old.people), _display_name(new.people - old.people))


def _departure(old: Claim, new: Claim) -> _Difference | None:
    """Compare places: a person left one for another."""
    people = _common_persons(old, new)
    if not people or not (_DENIES.search(new.statement.low) or _LEAVES.search(new.statement.low)):
        return None
    left = {text for text in old.statement.posts & new.statement.posts if people.isdisjoint(text.lower().split())}
    _, after = _different_names(old.statement.posts, new.statement.posts | _names(new), people)
    if not left or not after:
        return None
    return _Difference(f"where {_display_name(people)} is", ", ".join(sorted(left)), after)


def _stated_change(old: Claim, new: Claim) -> _Difference | None:
    """Return a change of any kind about the same person that the later claim states."""
    if not _DENIES.search(new.statement.low):
        return None
    shared, people = _common_topic(old, new), _common_people(old, new)
    if not shared or not people or _has_value(old) or 2 * rarity(shared) < rarity(old.topic):
        return None
    subject = f"{_display_name(people)}'s {_wording(shared, old)}"
    return _Difference(subject, _wording(old.topic, old), _wording(new.topic - old.topic, new))


_FRAMES = (
    _value_change, _place_change, _role_change, _favourite_change, _responsibility_change, _departure, _stated_change
)  # fmt: skip


def _common_people(old: Claim, new: Claim) -> frozenset[str]:
    """Return the people that both claims concern."""
    return old.people & new.people


def _common_persons(old: Claim, new: Claim) -> frozenset[str]:
    """Return the people that both claims concern, without names of places."""
    places = {part for text in old.statement.posts | new.statement.posts for part in text.lower().split()}
    return _common_people(old, new) - places


def _may_share_person(old: Claim, new: Claim) -> bool:
    """Return whether both claims concern the same person, or one of them concerns nobody."""
    return not old.people or not new.people or bool(old.people & new.people)


def _has_value(claim: Claim) -> bool:
    return bool(claim.statement.amounts or claim.statement.days or claim.statement.numbers)


def _common_topic(old: Claim, new: Claim) -> frozenset[str]:
    """Return the common topic, if it is at least MIN_SHARED of the shorter topic."""
    shared = old.topic & new.topic
    shorter = min(rarity(old.topic), rarity(new.topic))
    return shared if shared and rarity(shared) >= MIN_SHARED * shorter else frozenset()


def _names(claim: Claim) -> frozenset[str]:
    return frozenset(text for text, _ in claim.statement.names)


def _different_names(before: frozenset[str], after: frozenset[str], people: frozenset[str]) -> tuple[str, str]:
    """Return the old names and the added new names, without ``people``, as text."""
    olds = {text for text in before if people.isdisjoint(text.lower().split())}
    news = {text for text in after if people.isdisjoint(text.lower().split())}
    return ", ".join(sorted(olds)), ", ".join(sorted(news - olds))


def _wording(tokens: Iterable[str], claim: Claim) -> str:
    """Return the words of a claim that contain these tokens, in order."""
    wanted = frozenset(tokens)
    words = (word.strip('.,;:!?"') for word in claim.statement.text.split())
    return " ".join(dict.fromkeys(word for word in words if not wanted.isdisjoint(tokenize(word))))


def _display_name(people: frozenset[str]) -> str:
    return " ".join(sorted(people)).title()
