"""Writes profiles: lasting and recent statements of people about themselves.

After PAMU (Sun et al. 2025, "Preference-Aware Memory Update for Long-Term LLM Agents", arXiv:2510.09720), which keeps a
long-term and a short-term tendency side by side, so that a new preference does not overwrite an old one. PAMU averages
numbers; zettel quotes statements, so that each one can be traced. A statement is **lasting** if the same person repeats
it, or makes a linked one, on several days that are far apart. It is **recent** if it is from the scope's last weeks and
not lasting.

English words indicate statements: "I love", "I'm allergic to", "my favorite". Facts that a model wrote ("Ann lives in
Oslo.") are statements if they begin with the name of a speaker.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import log
from typing import NamedTuple

from zettel.evolve.insights import MAX_TERM, span
from zettel.llm.prompt_lines import clip
from zettel.model import Kind, Note, implied_role
from zettel.text.extraction import TERM_RARITY, is_question, sentences
from zettel.text.keywords import find_terms

PROFILE = "profile"
"""The tag of a profile."""
PEOPLE = 3
"""The most people in a profile, those with the most statements first."""
LASTING, RECENT = 4, 3
"""The most statements of one person."""
LASTING_TIMES = 2
"""The fewest days of a lasting statement."""
LASTING_SPAN = timedelta(days=14)
"""The least time from the first of these days to the last."""
RECENT_SPAN = timedelta(days=30)
"""The longest time from a recent statement to the scope's latest event."""
MAX_STATEMENT = 110
"""The most characters of a statement; longer statements are cut."""
MAX_CHARS, MAX_LASTING = 1200, 800
"""The most characters of a profile, some 300 tokens, and of its lasting part."""
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
        self._by_full_name = {name.casefold(): name for name in sorted(speakers, reverse=True) if name.split()}
        namesakes: dict[str, list[str]] = {}
        for name, speaker in self._by_full_name.items():
            namesakes.setdefault(name.split()[0], []).append(speaker)
        self._by_first_name = {first: names[0] for first, names in namesakes.items() if len(names) == 1}

    def resolve(self, name: str) -> str | None:
        key = name.casefold()
        if " " in key and key not in self._by_full_name:
            return self._by_full_name.get(key.split()[0])
        return self._by_full_name.get(key) or self._by_first_name.get(key)


def statements(note: Note) -> list[Statement]:
    """Return the statements of a note about its speaker, or of a fact about the person at its start."""
    speaker = (note.speaker or "").strip()
    if note.kind is Kind.SEMANTIC and not speaker:
        person = _subject(note.content)
        texts = [note.content] if person else []
    elif not speaker or implied_role(speaker) not in (None, "user"):
        return []
    else:
        person = speaker
        texts = [text for text in sentences(note.content) if _CUE.search(text.replace("\u2019", "'"))]
    with_topics = [(text, _topics(text, person)) for text in texts if not is_question(text)]
    return [Statement(note.id, note.event_ids[0], person, clip(text, MAX_STATEMENT), topics, note.occurred_at)
            for text, topics in with_topics if topics]  # fmt: skip


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
    statements: Sequence[Statement],
    speakers: Collection[str],
    latest: datetime | None,
    linked: Mapping[str, Collection[tuple[str, datetime]]],
) -> Profile | None:
    """Return the profile of the people with the most statements, or None without lasting statements.

    ``latest`` is the time of the scope's last event. ``linked`` contains, by event, the linked notes of the same
    speaker with their times.
    """
    by_person: dict[str, list[Statement]] = {}
    known = _Speakers(speakers)
    for statement in sorted(statements, key=_order):
        if person := known.resolve(statement.person):
            by_person.setdefault(person, []).append(statement)
    people = sorted(by_person, key=lambda person: (-len(by_person[person]), person))[:PEOPLE]
    lasting: list[_Line] = []
    recent: list[_Line] = []
    for person in people:
        lines, topics = _lasting(person, by_person[person], linked)
        lasting += lines
        shown = {source for line in lines for source in line.sources}
        recent += _recent(person, by_person[person], topics, shown, latest)
    if not lasting:
        return None
    chosen = _fitting(lasting, MAX_LASTING)
    chosen += _fitting(recent, MAX_CHARS - sum(_size(line) for line in chosen))
    content = _text([line for line in lasting if line in chosen], [line for line in recent if line in chosen])
    described = [person for person in people if any(line.person == person for line in chosen)]
    return Profile(content, tuple(described), tuple(sorted({source for line in chosen for source in line.sources})))


def _lasting(
    person: str, statements: Sequence[Statement], linked: Mapping[str, Collection[tuple[str, datetime]]]
) -> tuple[list[_Line], set[str]]:
    """Return statements repeated after a long time, highest weight first, and all their topics."""
    by_topic: dict[str, list[Statement]] = {}
    for statement in statements:
        for topic in statement.topics:
            by_topic.setdefault(topic, []).append(statement)
    weighted: list[tuple[float, str, list[tuple[datetime, str]]]] = []
    for topic, related in by_topic.items():
        times = {(each.when, each.note) for each in related if each.when is not None}
        times |= {(when, note) for each in related if each.when for note, when in linked.get(each.event, ())}
        ordered = sorted(times)
        days = {when.date() for when, _ in ordered}
        if len(days) >= LASTING_TIMES and ordered[-1][0] - ordered[0][0] >= LASTING_SPAN:
            weighted.append((len(days) * (1 + log((ordered[-1][0] - ordered[0][0]).days)), topic, ordered))
    topics = {topic for _, topic, _ in weighted}
    lines: list[_Line] = []
    shown: set[str] = set()
    for weight, topic, ordered in sorted(weighted, key=lambda entry: (-entry[0], entry[1])):
        best = max(by_topic[topic], key=lambda each: (len(each.topics & topics), _order(each)))
        if best.topics & shown or len(lines) == LASTING:
            continue
        shown |= best.topics
        count = len({when.date() for when, _ in ordered})
        text = f"{best.text} ({count} days, {span([ordered[0][0], ordered[-1][0]])})"
        lines.append(_Line(person, text, weight, (best.note, ordered[0][1], ordered[-1][1])))
    return lines, topics


def _recent(
    person: str,
    statements: Sequence[Statement],
    lasting: Collection[str],
    shown: Collection[str],
    latest: datetime | None,
) -> list[_Line]:
    """Return recent statements that are not lasting, newest first."""
    lines: list[_Line] = []
    for note, _, _, text, topics, when in reversed(statements):
        if when is None or latest is None or latest - when > RECENT_SPAN or len(lines) == RECENT:
            continue
        if topics.isdisjoint(lasting) and note not in shown:
            lines.append(_Line(person, f"{text} ({when.date().isoformat()})", 0.0, (note,)))
    return lines


def _fitting(lines: Iterable[_Line], limit: int) -> list[_Line]:
    """Return the lines that fit into ``limit`` characters, highest weight first."""
    fitting: list[_Line] = []
    for line in sorted(lines, key=lambda line: -line.weight):
        if _size(line) <= limit:
            fitting.append(line)
            limit -= _size(line)
    return fitting


def _size(line: _Line) -> int:
    return len(_bullet(line)) + 1


def _text(lasting: Iterable[_Line], recent: Sequence[_Line]) -> str:
    lines = [LASTING_HEAD, *map(_bullet, lasting)]
    return "\n".join([*lines, RECENT_HEAD, *map(_bullet, recent)] if recent else lines)


def _bullet(line: _Line) -> str:
    return f"- {clip(line.person, MAX_TERM)}: {line.text}"


def _topics(text: str, person: str) -> frozenset[str]:
    """Return the keys of names and rare words in a sentence."""
    terms = find_terms(text)
    rare = {word.key for word in terms.words if word.rarity >= TERM_RARITY}
    return frozenset(rare | {name.key for name in terms.names}) - {person.casefold()}


def _order(statement: Statement) -> tuple[float, str]:
    return statement.when.timestamp() if statement.when else 0.0, statement.text
