"""When a note says that something an older one said holds no more.

Rules for plain statements in English: the same subject, the same thing stated of it, another value, and a word that
tells of a change, or a thing of which there is one at a time. Pure functions of two notes; a false replacement buries a
true memory, so what is in doubt replaces nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from zettel.annotate.tokens import tokenize
from zettel.evolve import words
from zettel.evolve.claims import EXCLUSIVE_STEMS, GONE_SHARE, Claim, Gone, State, claims, names_in, news
from zettel.model import Kind, Link, LinkType, Note

CHANGE_WEIGHT = 0.9
"""Weight of these links: what replaced a note is nearly as good an answer as the note."""
DOUBTED_CONFIDENCE = 0.5
"""Confidence of a note that another one contradicts: either may be right."""
MAX_TOLD = 60
"""Characters of a value that a reason quotes."""
MOST_STEMS = 3
"""Longest value of a plain "is", in words that count: beyond it, it is a tale and no value."""
_IS = re.compile(r"\b(?:is|are)\b|'s\b")
_TO_IS = re.compile(
    r"^.*?\b(?:is|are|to|at|on|in|into|with|as|been)\b|\b(?:now|these days|instead|from now on)\b", re.IGNORECASE
)
_CODE = re.compile(r"^(?:\+?[\d\s().-]+|\S*[@\d]\S*)$")
_NO_SIGN = re.compile(r"[^\w@]")
_WHEN = ("day", "date", "clock", "part of day")


class Change(NamedTuple):
    """How a later note stands to an earlier one, SUPERSEDES or CONTRADICTS, and why, for people."""

    type: LinkType
    reason: str


def may_change(note: Note) -> bool:
    """Whether a note claims anything that could replace, or be replaced; quick, for every note is asked."""
    return note.kind is Kind.EPISODIC and not note.archived and bool(news(note.content, note.role))


def in_time(one: Note, other: Note) -> tuple[Note, Note, bool]:
    """The two notes, the earlier first, and whether their dates say so; where these do not, arrival does."""
    if one.valid_from and other.valid_from and one.valid_from != other.valid_from:
        return (one, other, True) if one.valid_from < other.valid_from else (other, one, True)
    return (one, other, False) if one.seq < other.seq else (other, one, False)


def change_of(earlier: Note, later: Note, dated: bool) -> Change | None:
    """What the later note says about the earlier one; ``dated``: their dates tell which is which."""
    if (
        earlier.kind is not Kind.EPISODIC
        or earlier.archived
        or not may_change(later)
        or set(earlier.event_ids) & set(later.event_ids)
    ):
        return None
    found: Change | None = None
    for new in news(later.content, later.role):
        for old in claims(earlier.content, earlier.role, new):
            change = _between(old, new, dated)
            if change and change.type is LinkType.SUPERSEDES:
                return change
            found = found or change
    return found


def change_links(
    note: Note, others: Sequence[Note], recorded_at: datetime
) -> tuple[tuple[Link, ...], tuple[Note, ...]]:
    """The links between a note and others that arrived before it, and the others that they concern.

    News of an earlier time arrive late: then the link leads from the other note to this one. Of several that replace it
    the first in time does.
    """
    links: list[Link] = []
    concerned: list[Note] = []
    late: tuple[Note, Change] | None = None
    for other in others:
        earlier, later, dated = in_time(other, note)
        change = change_of(earlier, later, dated)
        if change is None:
            continue
        if later is note:
            links.append(_link(note, other, change, recorded_at))
            concerned.append(other)
        elif late is None or in_time(other, late[0])[0] is other:
            late = (other, change)
    if late is not None:
        links.append(_link(late[0], note, late[1], recorded_at))
        concerned.append(late[0])
    return tuple(links), tuple(concerned)


def _link(source: Note, target: Note, change: Change, recorded_at: datetime) -> Link:
    return Link(
        source=source.id,
        target=target.id,
        type=change.type,
        weight=CHANGE_WEIGHT,
        reason=change.reason,
        recorded_at=recorded_at,
    )


def doubted(note: Note) -> dict[str, float]:
    """The change of a note that says otherwise than another, and nobody knows which of them is right."""
    return {"confidence": min(note.confidence, DOUBTED_CONFIDENCE)}


def _between(old: Claim, new: Claim, dated: bool) -> Change | None:
    return _of_states(old, new, dated) or _of_gone(old, new) or _of_values(old, new, dated)


# ----------------------------------------------------------------------------------------------------------- frames


def _of_states(old: Claim, new: Claim, dated: bool) -> Change | None:
    """The same frame of the same person with another value."""
    for now in new.states:
        for then in old.states:
            if not _same_frame(old, then, new, now):
                continue
            what = f"{'' if now.shared else _whose(new)}{now.frame}"
            if now.how == "ends":
                if not _names_both(then.v, now.v) or _stems(then.v) & _stems(now.v):
                    return _superseded(what, then.v, "")
                continue
            if not _differ(then.v, now.v, told=now.how == "comes"):
                continue
            if now.how == "comes" or new.sign:
                return _superseded(what, then.v, now.v)
            if now.slot != then.slot:
                continue
            return _superseded(what, then.v, now.v) if dated and not now.shared else _contradicted(what, then.v, now.v)
    return None


def _same_frame(old: Claim, then: State, new: Claim, now: State) -> bool:
    """Whether both fill the same frame, and the older one does hold."""
    if then.how == "ends" or then.shared != now.shared:
        return False
    if not now.shared:
        return then.frame == now.frame and _same_owner(old, new)
    stems = _stems(then.frame), _stems(now.frame)
    if now.frame.startswith("name of ") and _stems(then.v) == stems[1] - _stems("name"):
        return True  # "We renamed Rex to Bruno."
    return stems[0] <= stems[1] or stems[1] <= stems[0]


def _stems(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


def _names_both(one: str, other: str) -> bool:
    return bool(one and other)


def _differ(one: str, other: str, *, told: bool) -> bool:
    """Whether two values are different ones, by their names where both have some.

    Where a change is ``told``, it is enough that each has a word of its own.
    """
    if _CODE.search(one) and _CODE.search(other):
        return _NO_SIGN.sub("", one.casefold()) != _NO_SIGN.sub("", other.casefold())
    named, stems = (names_in(one), names_in(other)), (_stems(one), _stems(other))
    first, second = named if all(named) else stems
    if all(named) or told:
        return bool(first - second and second - first)
    return not first & second


# ------------------------------------------------------------------------------------------------------- given up


def _of_gone(old: Claim, new: Claim) -> Change | None:
    """What the new text gives up is what the old one says."""
    if not old.stands or not _same_owner(old, new, of_things=True):
        return None
    for gone in new.gone:
        named = names_in(gone.text) | {stem for stem in gone.stems if stem[:1].isdigit()}
        held = gone.stems & old.stems
        if not held or not named <= old.stems or len(held) < GONE_SHARE * len(gone.stems):
            continue
        if old.owner != new.owner and gone.text.split()[0].endswith("ing"):
            continue
        if _is_habit(old, gone) and not _gives_up(old, gone):
            return Change(LinkType.SUPERSEDES, f"says that this holds no more{_for(new)}: {_told(gone.text)}")
    return None


def _is_habit(old: Claim, gone: Gone) -> bool:
    return bool(old.states or old.typed or old.head & gone.stems or old.tail & gone.stems)


def _gives_up(old: Claim, gone: Gone) -> bool:
    """Whether the old text has given it up itself."""
    return any(gone.stems & before.stems for before in old.gone)


# --------------------------------------------------------------------------------------------------------- values


def _of_values(old: Claim, new: Claim, dated: bool) -> Change | None:
    """The same thing with another time, number, address, name or wording."""
    if not old.stands or not new.stands or not _same_owner(old, new, of_things=True) or not _same_head(old, new):
        return None
    what = " ".join(_surface(old, old.head & new.head)) or "it"
    pair = _other_value(old.typed, new.typed, strong=new.sign == 2) or _other_wording(old, new)
    if pair is None:
        return None
    what = f"{_whose(new)}{what}"
    if new.sign:
        return _superseded(what, *pair)
    if not new.exclusive or old.head != new.head:
        return None
    return _superseded(what, *pair) if dated else _contradicted(what, *pair)


def _other_wording(old: Claim, new: Claim) -> tuple[str, str] | None:
    """What both say of it, where no value has a type, and it is another: by names, or for a short plain "is"."""
    if any(kind in new.typed and old.typed[kind].keys() != new.typed[kind].keys() for kind in old.typed):
        return None
    told = _said(old), _said(new)
    shifted = words.SHIFTED.search(new.text) is not None
    if not all(told) or not _differ(*told, told=shifted):
        return None
    plain = old.head == new.head and words.NOW_IS.search(new.text) and max(len(old.tail), len(new.tail)) <= MOST_STEMS
    named = names_in(told[0]) and names_in(told[1])
    if shifted or old.head & new.head & EXCLUSIVE_STEMS or (plain and (named or _IS.search(old.text))):
        return told
    return None


def _said(claim: Claim) -> str:
    """What a clause says of what it speaks of: its words behind that."""
    end = max(
        (claim.text.casefold().find(word.casefold()) + len(word) for word in _surface(claim, claim.head)), default=0
    )
    return _TO_IS.sub("", claim.text[end:]).strip(" ,.")


def _same_head(old: Claim, new: Claim) -> bool:
    if not old.head & new.head:
        return False
    if new.head <= old.head or new.head - old.head <= old.stems | words.GENERIC:
        return True
    return new.sign == 2 and (new.head <= old.stems or old.head <= new.stems)


def _other_value(
    old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]], *, strong: bool
) -> tuple[str, str] | None:
    """The values of the first type that both have and in which they have nothing in common."""
    for kind in words.TYPED:
        if (
            kind in old
            and kind in new
            and not old[kind].keys() & new[kind].keys()
            and _comparable(kind, old[kind], new[kind])
        ):
            return ", ".join(old[kind].values()), ", ".join(new[kind].values())
    before, after = [kind for kind in _WHEN if kind in old], [kind for kind in _WHEN if kind in new]
    if strong and before and after and not set(before) & set(after):
        return ", ".join(old[before[0]].values()), ", ".join(new[after[0]].values())
    return None


def _comparable(kind: str, old: Iterable[str], new: Iterable[str]) -> bool:
    """Numbers of different units are no other value of the same thing."""
    if kind != "number":
        return True
    units = [{value.partition(" ")[2] for value in values} for values in (old, new)]
    return "" in units[0] | units[1] or bool(units[0] & units[1])


# ---------------------------------------------------------------------------------------------------------- shared


def _same_owner(old: Claim, new: Claim, *, of_things: bool = False) -> bool:
    """Whether both are about the same one; a thing may be called "my" here and "the" there."""
    if of_things:
        if not old.owner or not new.owner or old.ours or new.ours:
            return _is_one(old.owner, new.owner) or (_thing(old) and _thing(new)) or _loose(old, new)
        return _is_one(old.owner, new.owner)
    return bool(old.owner) and _is_one(old.owner, new.owner)


def _is_one(one: str, other: str) -> bool:
    """Whether two names are of the same one: "ann" may be "ann lee"."""
    if one == other:
        return True
    first, second = one.partition("/"), other.partition("/")
    short = " " not in first[0] or " " not in second[0]
    return short and first[2] == second[2] and first[0].split()[:1] == second[0].split()[:1] != []


def _thing(claim: Claim) -> bool:
    return not claim.owner or claim.ours


def _loose(old: Claim, new: Claim) -> bool:
    """ "The appointment" may be mine."""
    return (not old.owner) != (not new.owner) and new.sign == 2


def _whose(claim: Claim) -> str:
    if not claim.owner or claim.ours:
        return ""
    return "'s ".join(part.title() if place == 0 else part for place, part in enumerate(claim.owner.split("/"))) + "'s "


def _for(claim: Claim) -> str:
    return f" for {_whose(claim).removesuffix(chr(39) + 's ')}" if _whose(claim) else ""


def _surface(claim: Claim, stems: frozenset[str]) -> list[str]:
    """The words of a clause that have these stems, in order."""
    return list(dict.fromkeys(word for word in claim.text.split() if frozenset(tokenize(word)) & stems))


def _told(text: str) -> str:
    text = " ".join(text.split()).strip(" ,.!")
    return text if len(text) <= MAX_TOLD else text[: MAX_TOLD - 1].rstrip() + "\u2026"


def _superseded(what: str, before: str, after: str) -> Change:
    told = f"{_told(before)} \u2192 {_told(after)}" if after else f"{_told(before)} no more" if before else "no more"
    return Change(LinkType.SUPERSEDES, f"says that {what} changed: {told}")


def _contradicted(what: str, before: str, after: str) -> Change:
    return Change(LinkType.CONTRADICTS, f"says otherwise of {what}: {_told(before)} / {_told(after)}")
