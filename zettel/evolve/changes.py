"""When a note says that what an older one says holds no more.

Both must claim something of the same subject, in the same frame, with another value. A frame is where somebody lives or
works, a day, a price or a number of something that both name, who is something to somebody or looks after a thing, what
somebody likes best; and anything at all where the later one says that it changed. Pure functions of two notes. A false
replacement buries a true memory, so what is in doubt replaces nothing: what may be told of two things, or is said
otherwise in the same breath without a word of change, only contradicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from zettel.annotate.statements import Matter
from zettel.annotate.tokens import tokenize
from zettel.evolve.apart import adds, one_narrowed, other_times, two_things
from zettel.evolve.claims import MINE, Claim, claims, may_change, rarity
from zettel.model import Link, LinkType, Note

CHANGE_WEIGHT = 0.9
"""Weight of these links: what replaced a note is nearly as good an answer as the note."""
SHARED = 0.4
"""Share of the topic of the shorter sentence, by rarity, that both have."""
_POSSESSED = re.compile(r"\b(\w+)'s (?:\w+ ){0,2}\w+")
_DENIES = re.compile(
    r"\b(?:no longer|(?:any|no) ?more|any ?longer|instead of|switched (?:from|to)|swapped|used to\b.*\b(?:but|now"
    r"|these days)|(?:have|has|'ve|'s) stopped)\b"
)
_CORRECTS = re.compile(r"\b(?:actually|correction|sorry|i was wrong|i mean|i meant|my mistake|scratch that)\b")
"""What one says who corrects oneself."""
_LEAVES = re.compile(r"\b(?:quit|gave up|given up|handed in|left|goodbye|moved from|resigned)\b")
ROLES = frozenset(
    tokenize(
        "boss manager supervisor mentor tutor coach trainer teacher instructor doctor dentist therapist physician"
        " vet lawyer"
        " accountant flatmate roommate housemate partner husband wife spouse fiance fiancé fiancée girlfriend boyfriend"
        " assistant landlord landlady neighbour neighbor captain chair chairman president leader deskmate"
    )
)
"""Tokens of what one person is to another, one at a time."""
_NUMBERED = frozenset(
    tokenize("number code pin password space seat room desk extension account version limit timeout size port quota")
)
"""What has a number of its own."""
_IS_SO = re.compile(r"(?:\b(?:is|are|be|now|to|at|says|reads|from)|[:=])\s+\d|\d\S*(?: \w+)? as\b")
"""A number that something has."""
_HAPPENED = re.compile(r"\b(?:\w{3,}ed|met|ran|saw|took|went|came|ate|had|won|made|sat|slept|rode|drove|flew|read)\b")
_HOLDS = re.compile(r"\b(?:is|are|be|am|now|has|have|to|from|until)\b|'(?:s|re|m)\b|[:=]")
"""What was done once, with a number, and what makes a state of it."""
_EVENT = frozenset(tokenize("found collected dropped lost won lent borrowed gave owe owes bet fine spent stole raffle"))
"""What happens to money once, and is no price."""
_BEST = frozenset(tokenize("favourite favorite best prefer top choice perfect crown love fond mad like swear"))


class Change(NamedTuple):
    """How a later note stands to an earlier one, SUPERSEDES or CONTRADICTS, and why, for people."""

    type: LinkType
    reason: str


def in_time(one: Note, other: Note) -> tuple[Note, Note, bool]:
    """The two notes, the earlier first, and whether their dates say so; where these do not, arrival does."""
    if one.valid_from and other.valid_from and one.valid_from != other.valid_from:
        return (one, other, True) if one.valid_from < other.valid_from else (other, one, True)
    return (one, other, False) if one.seq < other.seq else (other, one, False)


def change_of(earlier: Note, later: Note, dated: bool) -> Change | None:
    """What the later note says about the earlier one; ``dated``: their dates tell which is which."""
    if set(earlier.event_ids) & set(later.event_ids):
        return None
    unsaid = _in_one_sitting(earlier, later) and not _CORRECTS.search(later.content.lower())
    for new in claims(later):
        for old in claims(earlier):
            if old.whom.isdisjoint(new.whom) and old.topic.isdisjoint(new.topic):
                continue
            found = _between(old, new)
            if found is not None:
                what, before, after = found
                if new.said.changed or (dated and not unsaid and not one_narrowed(old, new)):
                    return Change(LinkType.SUPERSEDES, f"says that {what} changed: {before} \u2192 {after}")
                return Change(LinkType.CONTRADICTS, f"says otherwise of {what}: {before} / {after}")
    return None


def _in_one_sitting(earlier: Note, later: Note) -> bool:
    """Whether both were said in one session on one day: what changes meanwhile is told as a change."""
    days = [note.valid_from and note.valid_from.date() for note in (earlier, later)]
    return earlier.session == later.session and days[0] == days[1]


def change_links(note: Note, others: Iterable[Note], recorded_at: datetime) -> tuple[Link, ...]:
    """The links between a note and others that arrived before it.

    News of an earlier time arrive late: then the link leads from the other note to this one. Of several that replace it
    the first in time does.
    """
    links: list[Link] = []
    late: tuple[Note, Change] | None = None
    for other in others:
        if not may_change(note, other):
            continue
        earlier, later, dated = in_time(other, note)
        change = change_of(earlier, later, dated)
        if change is None:
            continue
        if later is note:
            links.append(_link(note, other, change, recorded_at))
        elif late is None or in_time(other, late[0])[0] is other:
            late = (other, change)
    if late is not None:
        links.append(_link(late[0], note, late[1], recorded_at))
    return tuple(links)


def _link(source: Note, target: Note, change: Change, recorded_at: datetime) -> Link:
    return Link(
        source=source.id,
        target=target.id,
        type=change.type,
        weight=CHANGE_WEIGHT,
        reason=change.reason,
        recorded_at=recorded_at,
    )


# ------------------------------------------------------------------------------------------------------------- frames


def _between(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """What changed, from what, to what; the first frame that both fill with different values."""
    if adds(new):
        return None
    for frame in _FRAMES:
        found = frame(old, new)
        if found is not None:
            return found
    return None


def _place(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """Where one lives, or works: the same person, the same field, another name behind a preposition."""
    whom = _persons(old, new)
    if not whom or other_times(old, new):
        return None
    for matter, name in ((Matter.HOME, "home"), (Matter.WORK, "job")):
        if not (old.said.matter & matter and new.said.matter & matter):
            continue
        first, second = ((one.said.located if matter is Matter.HOME else one.said.posts) for one in (old, new))
        before, after = _other(first, second, whom)
        if before and after:
            return f"{_called(whom)}'s {name}", before, after
    return None


def _value(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """A price, a day or a number of what both name."""
    shared = _shared(old, new)
    if not shared or not _alike(old, new) or two_things(old, new, shared):
        return None
    one, other = old.said, new.said
    if one.amounts and other.amounts:
        before, after = one.amounts, other.amounts
        fits = _EVENT.isdisjoint(one.tokens | other.tokens)
    else:
        before, after = (one.days, other.days) if one.days and other.days else (one.numbers, other.numbers)
        apart = all(claim.said.definite & claim.topic - shared for claim in (old, new))  # "my exam", "my oral exam"
        fits = bool(shared & (one.definite | other.definite)) and not apart
        if not (one.days and other.days):  # how many of something there were once is no state
            fits = fits and (bool(shared & _NUMBERED) or all(_IS_SO.search(said.low) for said in (one, other)))
            fits = fits and not all(_HAPPENED.search(said.low) and not _HOLDS.search(said.low) for said in (one, other))
    if not before or not fits or after <= before:
        return None
    return _told(shared, old), ", ".join(sorted(before)), ", ".join(sorted(after - before))


def _person(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """Who is something to somebody."""
    shared = _shared(old, new)
    owner = _owner(old) & _owner(new) if shared & ROLES else frozenset()
    if not owner or two_things(old, new, shared):
        return None
    before, after = _other(_names(old), _names(new), owner)
    return (f"{_called(owner)}'s {_told(shared, old)}", before, after) if before and after else None


def _owner(claim: Claim) -> frozenset[str]:
    """Whose a role is: "Ann's boss", "my boss" said by Ann, or whoever is named without a title."""
    possessors = frozenset(name.lower() for name in _POSSESSED.findall(claim.said.text))
    if possessors:
        return possessors
    return claim.speaker if MINE.search(claim.said.low) else claim.whom


def _best(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """What somebody likes best of a kind."""
    whom = _same(old, new)
    if not whom or not (old.said.matter & new.said.matter & Matter.LIKING):
        return None
    shared = _shared(old, new) - _BEST
    before, after = old.topic - new.topic - _BEST, new.topic - old.topic - _BEST
    names = _other(_names(old), _names(new), whom)
    told = names[0] or _told(before, old), names[1] or _told(after, new)
    if not shared or not all(told) or not old.said.tokens & new.said.tokens & _BEST:
        return None
    return f"{_called(whom)}'s favourite {_told(shared, old)}", *told


def _care(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """Who looks after a thing."""
    shared = _shared(old, new)
    if not shared or not (new.said.matter & Matter.CARE or new.said.changed) or not old.said.matter & Matter.CARE:
        return None
    if not shared & old.said.definite & new.said.definite or two_things(old, new, shared):
        return None
    if _value_of(old) or _value_of(new):
        return None
    if not old.whom or not new.whom or new.whom <= old.whom:
        return None
    return f"who looks after {_told(shared, old)}", _called(old.whom), _called(new.whom - old.whom)


def _given_up(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """A place that one is at no more, and another one instead."""
    whom = _persons(old, new)
    if not whom or not (_DENIES.search(new.said.low) or _LEAVES.search(new.said.low)):
        return None
    left = {text for text in old.said.posts & new.said.posts if whom.isdisjoint(text.lower().split())}
    _, after = _other(old.said.posts, new.said.posts | _names(new), whom)
    return (f"where {_called(whom)} is", ", ".join(sorted(left)), after) if left and after else None


def _told_change(old: Claim, new: Claim) -> tuple[str, str, str] | None:
    """Anything of which the later one says that it changed, and which the earlier one says of the same person."""
    if not _DENIES.search(new.said.low):
        return None
    shared, whom = _shared(old, new), _same(old, new)
    if not shared or not whom or _value_of(old) or 2 * rarity(shared) < rarity(old.topic):
        return None
    return f"{_called(whom)}'s {_told(shared, old)}", _told(old.topic, old), _told(new.topic - old.topic, new)


_FRAMES = (_value, _place, _person, _best, _care, _given_up, _told_change)


def _same(old: Claim, new: Claim) -> frozenset[str]:
    """Whom both are about: named in both, or the speaker of the one."""
    return old.whom & new.whom


def _persons(old: Claim, new: Claim) -> frozenset[str]:
    """The same without the places that both name."""
    places = {part for text in old.said.posts | new.said.posts for part in text.lower().split()}
    return _same(old, new) - places


def _alike(old: Claim, new: Claim) -> bool:
    """Whether both are about the same, or one of them about nobody."""
    return not old.whom or not new.whom or bool(old.whom & new.whom)


def _value_of(claim: Claim) -> bool:
    return bool(claim.said.amounts or claim.said.days or claim.said.numbers)


def _shared(old: Claim, new: Claim) -> frozenset[str]:
    """The topic of both, if it is most of what the one with less to say is about."""
    shared = old.topic & new.topic
    least = min(rarity(old.topic), rarity(new.topic))
    return shared if shared and rarity(shared) >= SHARED * least else frozenset()


def _names(claim: Claim) -> frozenset[str]:
    return frozenset(text for text, _ in claim.said.names)


def _other(before: frozenset[str], after: frozenset[str], whom: frozenset[str]) -> tuple[str, str]:
    """What only the one, and what only the other names besides whom they are about; "" where that is nothing."""
    olds = {text for text in before if whom.isdisjoint(text.lower().split())}
    news = {text for text in after if whom.isdisjoint(text.lower().split())}
    return ", ".join(sorted(olds)), ", ".join(sorted(news - olds))


def _told(tokens: Iterable[str], claim: Claim) -> str:
    """The words of a sentence that have these tokens, in order."""
    wanted = frozenset(tokens)
    words = (word.strip(".,;:!?\"") for word in claim.said.text.split())
    return " ".join(dict.fromkeys(word for word in words if not wanted.isdisjoint(tokenize(word))))


def _called(whom: frozenset[str]) -> str:
    return " ".join(sorted(whom)).title()
