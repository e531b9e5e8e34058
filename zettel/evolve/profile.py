"""Writes profiles: lasting and recent statements of people about themselves.

After PAMU (Sun et al. 2025, "Preference-Aware Memory Update for Long-Term LLM Agents", arXiv:2510.09720), which keeps a
long-term tendency and a short-term one side by side, so that a new whim does not overwrite what somebody always
liked. There both are averages of numbers; here they are statements in the words they were made in, so that each can be
traced: **lasting** is what was said, or linked to what the same person said, on several days that lie far apart;
**recent** is what was said in the scope's last weeks and does not last yet.

Statements are told by English words ("I love", "I'm allergic to", "my favorite"); of facts that a model wrote ("Ann
lives in Oslo.") those count that begin with somebody who speaks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import log
from typing import NamedTuple

from zettel.evolve.insights import MAX_WORD, span
from zettel.llm.prompt_lines import clip
from zettel.model import Kind, Note, implied_role
from zettel.text.extraction import TERM_RARITY, is_question, sentences
from zettel.text.keywords import find_terms

PROFILE = "profile"
"""Tag of the insight that is a scope's profile."""
PEOPLE = 3
"""People in a profile, those first who tell most of themselves."""
LASTING, RECENT = 4, 3
"""Statements of one person at most."""
LASTING_TIMES = 2
"""Days on which something was said for it to last."""
LASTING_SPAN = timedelta(days=14)
"""From the first of these days to the last."""
RECENT_SPAN = timedelta(days=30)
"""Before the scope's latest event."""
MAX_STATEMENT = 110
"""Characters of a statement; of a longer one the beginning is quoted."""
MAX_CHARS, MAX_LASTING = 1200, 800
"""Characters of a profile, some 300 tokens, and of what lasts in it."""
LASTING_HEAD, RECENT_HEAD = "Lasting", "Recent"

_OFTEN = r"(?:\s+(?:really|just|also|still|always|never|usually|often|absolutely|truly|do|don't|do not|have|mostly))*"
_VERBS = (
    r"love|adore|like|enjoy|prefer|hate|dislike|can't stand|cannot stand|avoid|live|work|study|teach|play|collect|own|"
    r"volunteer|speak|drink|eat|grew up|moved|practi[cs]e|coach|train|paint|write|bake|cook|garden|believe in"
)
_STATES = (
    r"an?|allergic|vegetarian|vegan|into|from|afraid|scared|passionate|learning|studying|training|working|married|"
    r"single|divorced|retired|the|terrified|obsessed|hooked|a fan"
)
_KIN = (
    r"wife|husband|partner|girlfriend|boyfriend|son|daughter|brother|sister|mother|father|mom|mum|dad|dog|cat|pet|job|"
    r"boss|team|name|hobby|goal|dream|birthday|family|kids|children|grandma|grandpa"
)
_CUE = re.compile(
    rf"(?<![\w'])(?:(?:i|we){_OFTEN}\s+(?:{_VERBS})|(?:i'm|i am|i've been|we're){_OFTEN}\s+(?:{_STATES})"
    rf"|my\s+(?:(?:own|new|old|little|big|younger|older)\s+)?(?:favou?rite|{_KIN}))(?!\w)",
    re.IGNORECASE,
)

class Statement(NamedTuple):
    """One sentence of a person about themselves, and the keys of its topics."""

    note: str
    event: str
    person: str
    text: str
    topics: frozenset[str]
    when: datetime | None


class Profile(NamedTuple):
    """The text of a profile, its people, and its source notes."""

    content: str
    people: tuple[str, ...]
    sources: tuple[str, ...]


class _Line(NamedTuple):
    person: str
    text: str
    weight: float
    sources: tuple[str, ...]


class _Speakers:
    """Resolves a name to a speaker, by full name or unique first name."""

    def __init__(self, speakers: Collection[str]) -> None:
        self._whole = {speaker.casefold(): speaker for speaker in sorted(speakers, reverse=True) if speaker.split()}
        firsts: dict[str, list[str]] = {}
        for name, speaker in self._whole.items():
            firsts.setdefault(name.split()[0], []).append(speaker)
        self._first = {name: found[0] for name, found in firsts.items() if len(found) == 1}

    def resolve(self, name: str) -> str | None:
        key = name.casefold()
        if " " in key and key not in self._whole:
            return self._whole.get(key.split()[0])
        return self._whole.get(key) or self._first.get(key)


def statements(note: Note) -> list[Statement]:
    """Return the statements of a note about its speaker, or (in a fact) about the person that it begins with."""
    speaker = (note.speaker or "").strip()
    if note.kind is Kind.SEMANTIC and not speaker:
        person = _subject(note.content)
        told = [note.content] if person else []
    elif not speaker or implied_role(speaker) not in (None, "user"):
        return []
    else:
        person = speaker
        told = [one for one in sentences(note.content) if _CUE.search(one.replace("\u2019", "'"))]
    made = [(one, _topics(one, person)) for one in told if not is_question(one)]
    return [Statement(note.id, note.event_ids[0], person, clip(one, MAX_STATEMENT), topics, note.occurred_at)
            for one, topics in made if topics]  # fmt: skip


def _subject(fact: str) -> str:
    """Return the name at the start of a fact: its first word and the capitalised words after it."""
    name: list[str] = []
    for word in fact.split():
        if name and not word[0].isupper():
            break
        name.append(word.removesuffix("'s").removesuffix("\u2019s").strip(".,"))
        if name[-1] != word:  # "Ann's Volvo", "Ann, Bob and Eve"
            break
    return " ".join(name)


def profile(
    told: Sequence[Statement],
    speakers: Collection[str],
    latest: datetime | None,
    near: Mapping[str, Collection[tuple[str, datetime]]],
) -> Profile | None:
    """The profile of those who tell most of themselves, or None as long as nothing lasts.

    ``latest`` is when the scope's last event occurred; ``near`` are, by event, the note and the time of what the same
    person said elsewhere and it is linked to.
    """
    by_person: dict[str, list[Statement]] = {}
    who = _Speakers(speakers)
    for one in sorted(told, key=_order):
        if person := who.resolve(one.person):
            by_person.setdefault(person, []).append(one)
    people = sorted(by_person, key=lambda person: (-len(by_person[person]), person))[:PEOPLE]
    lasting: list[_Line] = []
    recent: list[_Line] = []
    for person in people:
        lines, topics = _lasting(person, by_person[person], near)
        lasting += lines
        shown = {source for line in lines for source in line.sources}
        recent += _recent(person, by_person[person], topics, shown, latest)
    if not lasting:
        return None
    kept = _fitting(lasting, MAX_LASTING)
    kept += _fitting(recent, MAX_CHARS - sum(_size(line) for line in kept))
    content = _text([line for line in lasting if line in kept], [line for line in recent if line in kept])
    told_of = [person for person in people if any(line.person == person for line in kept)]
    return Profile(content, tuple(told_of), tuple(sorted({source for line in kept for source in line.sources})))


def _lasting(
    person: str, told: Sequence[Statement], near: Mapping[str, Collection[tuple[str, datetime]]]
) -> tuple[list[_Line], set[str]]:
    """Return statements repeated after a long time, highest weight first, and all their topics."""
    about: dict[str, list[Statement]] = {}
    for one in told:
        for topic in one.topics:
            about.setdefault(topic, []).append(one)
    weighed: list[tuple[float, str, list[tuple[datetime, str]]]] = []
    for topic, said in about.items():
        when_said = {(one.when, one.note) for one in said if one.when is not None}
        when_said |= {(when, note) for one in said if one.when for note, when in near.get(one.event, ())}
        ordered = sorted(when_said)
        days = {when.date() for when, _ in ordered}
        if len(days) >= LASTING_TIMES and ordered[-1][0] - ordered[0][0] >= LASTING_SPAN:
            weighed.append((len(days) * (1 + log((ordered[-1][0] - ordered[0][0]).days)), topic, ordered))
    topics = {topic for _, topic, _ in weighed}
    lines: list[_Line] = []
    shown: set[str] = set()
    for weight, topic, times in sorted(weighed, key=lambda one: (-one[0], one[1])):
        said = about[topic]
        best = max(said, key=lambda one: (len(one.topics & topics), _order(one)))
        if best.topics & shown or len(lines) == LASTING:
            continue
        shown |= best.topics
        count = len({when.date() for when, _ in times})
        text = f"{best.text} ({count} days, {span([times[0][0], times[-1][0]])})"
        lines.append(_Line(person, text, weight, (best.note, times[0][1], times[-1][1])))
    return lines, topics


def _recent(
    person: str, told: Sequence[Statement], lasting: Collection[str], shown: Collection[str], latest: datetime | None
) -> list[_Line]:
    """Return recent statements that are not lasting, newest first."""
    lines: list[_Line] = []
    for one in reversed(told):
        if one.when is None or latest is None or latest - one.when > RECENT_SPAN or len(lines) == RECENT:
            continue
        if one.topics.isdisjoint(lasting) and one.note not in shown:
            lines.append(_Line(person, f"{one.text} ({one.when.date().isoformat()})", 0.0, (one.note,)))
    return lines


def _fitting(lines: Iterable[_Line], room: int) -> list[_Line]:
    """Return the lines that fit, highest weight first."""
    kept: list[_Line] = []
    for line in sorted(lines, key=lambda line: -line.weight):
        if _size(line) <= room:
            kept.append(line)
            room -= _size(line)
    return kept


def _size(line: _Line) -> int:
    return len(_bullet(line)) + 1


def _text(lasting: Iterable[_Line], recent: Sequence[_Line]) -> str:
    lines = [LASTING_HEAD, *map(_bullet, lasting)]
    return "\n".join([*lines, RECENT_HEAD, *map(_bullet, recent)] if recent else lines)


def _bullet(line: _Line) -> str:
    return f"- {clip(line.person, MAX_WORD)}: {line.text}"


def _topics(text: str, person: str) -> frozenset[str]:
    """Return the keys of names and rare words in a sentence."""
    reading = find_terms(text)
    rare = {word.key for word in reading.words if word.rarity >= TERM_RARITY}
    return frozenset(rare | {name.key for name in reading.names}) - {person.casefold()}


def _order(one: Statement) -> tuple[float, str]:
    return one.when.timestamp() if one.when else 0.0, one.text
