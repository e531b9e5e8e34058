"""Writes profiles: standing instructions, and lasting and recent statements of people about themselves.

After PAMU (Sun et al. 2025, "Preference-Aware Memory Update for Long-Term LLM Agents", arXiv:2510.09720), which keeps a
long-term and a short-term tendency side by side, so that a new preference does not overwrite an old one. PAMU averages
numbers; zettel quotes statements, so that each one can be traced. A statement is **recent** if it is from the scope's
last weeks and nothing like it was stated before, else **lasting**. One mention suffices. A fact that a later statement
replaced is left out, and of similar statements only the best is shown.

Statements are sentences with a fact (:mod:`zettel.text.facts`) or many cues of one (:mod:`zettel.evolve.about`), and
facts that a model wrote ("Ann lives in Oslo.") about a speaker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import log
from typing import NamedTuple

from zettel.evolve.about import Place, weight_about
from zettel.evolve.insights import MAX_TERM, span
from zettel.link.fact_changes import replaces
from zettel.llm.prompt_lines import clip
from zettel.model import Kind, Note, implied_role
from zettel.text.asserted import MAX_CHARS as MAX_NOTE
from zettel.text.asserted import expanded, own_words, spelled_out
from zettel.text.dates import find_dates
from zettel.text.extraction import asks, sentences
from zettel.text.facts import Fact, belongings, endings, facts
from zettel.text.language_files import language_of
from zettel.text.secret_shapes import secrets_in
from zettel.text.tokens import tokenize
from zettel.text.values import is_named

PEOPLE = 3
"""The most people in a profile, those with the most statements first."""
SHOWN = 240
"""The most statements that a model sees, those with the highest weights: some 7,000 tokens."""
LINES = 60
"""The most statements in a profile."""
COMPARED = 600
"""The most statements of a person that are compared, those with the highest weights."""
LEAST_WEIGHT = -2.2
"""The lowest weight of a statement without a fact, in log-odds: one in ten such sentences is on a sheet."""
SHOWN_WEIGHT = -4.0
"""The same for statements that a model sees."""
FACT_WEIGHT = 0.0
"""The lowest weight of a statement with a fact about the person, and of a fact that a model wrote."""
SIMILAR, PENALTY = 0.3, 4.0
"""A statement loses this weight per further part of the shorter one's words that it shares with a shown one."""
SAME = 0.5
"""From this share of common words on, two statements are one that was repeated. It weighs more by log(days)."""
RECENT_SPAN = timedelta(days=30)
"""The longest time from a recent statement to the scope's latest event."""
MIN_STATEMENT, MAX_STATEMENT = 8, 160
"""The fewest characters of a statement, and the most that are shown."""
MAX_CHARS = 4800
"""The most characters of a profile, some 1,200 tokens."""
INSTRUCTIONS_HEAD, LASTING_HEAD, RECENT_HEAD = "Instructions", "Lasting", "Recent"
_ABOUT_OTHERS = frozenset({"value", "responsible", "version", "identifier"})
"""Attributes of things, which a profile shows only if the sentence has many cues of its own."""
_INSTRUCTION = "instruction"
_PASSING = frozenset({"home", "work", "job", "tool", "rent", "meeting", "habit"})
"""Attributes of which a statement "for now" is left out after some weeks; nobody should forget a medicine."""
_DATED = re.compile(r"\d|\b(?:this|next|coming|tomorrow|tonight|today)\b", re.IGNORECASE)
"""Signs of one day. A day of the week alone may be that of every week."""


class Statement(NamedTuple):
    """One sentence of a person, its facts, and the weight of its cues."""

    note: Note
    person: str
    text: str
    facts: tuple[Fact, ...]
    weight: float
    tokens: frozenset[str]

    @property
    def times(self) -> tuple[datetime, ...]:
        """Its times; a merged note has several."""
        return self.note.occurrences or ((self.note.occurred_at,) if self.note.occurred_at else ())

    @property
    def is_instruction(self) -> bool:
        return any(fact.attribute == _INSTRUCTION for fact in self.facts)


class Profile(NamedTuple):
    """The text of a profile, its people, and its source notes."""

    content: str
    people: tuple[str, ...]
    sources: tuple[str, ...]


class ProfileLine(NamedTuple):
    """A line of a profile, with its heading, its person and the ids of its notes."""

    head: str
    person: str
    text: str
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


def statements(note: Note, least: float = LEAST_WEIGHT) -> list[Statement]:
    """Return the statements of a note about its speaker, or of a model's fact about the person at its start.

    Statements without a fact have at least the weight ``least``. Sentences with a secret, such as a password, are none.
    Example: for "Hi! I'm allergic to nuts. Any ideas for lunch?" the statement "I'm allergic to nuts."
    """
    speaker = (note.speaker or "").strip()
    if note.kind is Kind.SEMANTIC and not speaker:
        person = _subject(note.content)
        return [_statement(note, person, note.content, facts(note), FACT_WEIGHT)] if person else []
    role = note.role or implied_role(speaker)
    if role not in (None, "user") or not (speaker or role) or len(note.content) > MAX_NOTE:
        return []
    language = language_of(note.content)
    if language is None:
        return []
    text = own_words(note.content, language)
    stated, names = facts(note), {"user", *speaker.lower().split()}
    spoken = sentences(text)
    found = []
    for number, sentence in enumerate(spoken):
        plain = spelled_out(sentence, language)
        full = expanded(plain, language).lower()
        own = tuple(fact for fact in stated if fact.text.lower() in full and fact.owner.person <= names)
        weight = FACT_WEIGHT if any(fact.attribute not in _ABOUT_OTHERS for fact in own) else float("-inf")
        is_own = not (language.first | language.mine).isdisjoint(full.split())
        if language.about and (own or is_own):
            weight = max(weight, weight_about(plain, Place(number, len(spoken)), language))
        is_shown = weight >= least and len(sentence) >= MIN_STATEMENT and not (asks(sentence) and not own)
        if is_shown and not secrets_in(sentence):  # a profile is in every prompt
            found.append(_statement(note, speaker or "user", sentence, own, weight))
    return found


def profile(statements: Iterable[Statement], speakers: Collection[str], latest: datetime | None) -> Profile | None:
    """Return the profile of the people with the most statements, or None without statements.

    ``latest`` is the time of the scope's last event.
    """
    described = current(statements, speakers)
    limit = MAX_CHARS // max(len(described), 1), LINES // max(len(described), 1)
    lines = []
    for person, spoken in described.items():
        lines += _lines(person, [each for each in spoken if not _is_over(each, latest)], latest, *limit)
    return render(lines)


def current(statements: Iterable[Statement], speakers: Collection[str]) -> dict[str, list[Statement]]:
    """Return by person, for the PEOPLE with the most, the statements that are still true, oldest first."""
    by_person: dict[str, list[Statement]] = {}
    known = _Speakers(speakers)
    for statement in sorted(statements, key=_order):
        if person := known.resolve(statement.person):
            by_person.setdefault(person, []).append(statement._replace(person=person))
    people = sorted(by_person, key=lambda person: (-len(by_person[person]), person))[:PEOPLE]
    return {person: _current(by_person[person]) for person in people}


def shown_to_model(described: Mapping[str, Sequence[Statement]]) -> list[Statement]:
    """Return the statements of the ``current`` ones that a model sees, as many of each person."""
    return [one for spoken in described.values() for one in _weightiest(spoken, SHOWN // len(described))]


def _weightiest(spoken: Sequence[Statement], count: int) -> list[Statement]:
    """Return the ``count`` statements with the highest weights, instructions first, in their order."""
    places = sorted(range(len(spoken)), key=lambda place: (spoken[place].is_instruction, spoken[place].weight, place))
    return [spoken[place] for place in sorted(places[-count:])]


def render(lines: Sequence[ProfileLine]) -> Profile | None:
    """Return the profile with these lines under their headings, None without any."""
    if not lines:
        return None
    content = "\n".join(
        text
        for head in (INSTRUCTIONS_HEAD, LASTING_HEAD, RECENT_HEAD)
        if (under := [line for line in lines if line.head == head])
        for text in (head, *map(_bullet, under))
    )
    people = tuple(dict.fromkeys(line.person for line in lines))
    return Profile(content, people, tuple(sorted({source for line in lines for source in line.sources})))


def shortened(profile: str, fits: Callable[[str], bool]) -> str:
    """Return a profile without the oldest lines under its headings, so that it fits; "" if no line does.

    Under each heading the oldest line is first. Lasting statements are left out first, instructions last.
    """
    parts: list[list[str]] = []
    for line in profile.splitlines():
        if not line.startswith("- ") or not parts:
            parts.append([])
        parts[-1].append(line)
    for part in sorted(parts, key=lambda part: (part[0] == INSTRUCTIONS_HEAD, part[0] == RECENT_HEAD)):
        while len(part) > 1 and not fits(_joined(parts)):
            del part[1]
    return _joined(parts)


def _joined(parts: Iterable[Sequence[str]]) -> str:
    return "\n".join(line for part in parts if len(part) > 1 for line in part)


def _statement(note: Note, person: str, text: str, stated: tuple[Fact, ...], weight: float) -> Statement:
    return Statement(note, person, clip(text, MAX_STATEMENT), stated, weight, frozenset(tokenize(text)))


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


def _current(spoken: Sequence[Statement]) -> list[Statement]:
    """Return the statements, oldest first, without the clauses whose facts later ones replaced or ended."""
    alike: dict[tuple[str, frozenset[str]], list[tuple[Statement, Fact]]] = {}
    for statement in spoken:
        for fact in statement.facts:
            alike.setdefault((fact.attribute, fact.thing), []).append((statement, fact))
    old = {
        (id(earlier), fact)
        for stated in alike.values()
        for place, (later, new) in enumerate(stated)
        for earlier, fact in stated[max(0, place - COMPARED) : place]
        if replaces(new, later.note, fact, earlier.note)
    }
    current: list[Statement] = []
    ends: list[Fact] = []  # what later statements report as ended
    for statement in reversed(spoken):
        replaced = {fact.text for fact in statement.facts if (id(statement), fact) in old}
        lasting = _without_ended(statement, ends)
        shown = lasting and _without(lasting, replaced)
        if shown and not (shown.facts and all(fact.sense == "ends" for fact in shown.facts)):
            current.append(shown)
        ends += endings(statement.note)
    return current[::-1]


def _without_ended(statement: Statement, ends: Sequence[Fact]) -> Statement | None:
    """Return a statement without its end "with my boyfriend Tom" if that ended; None if something before it ended.

    ``ends`` are the ends that later statements report.
    """
    text = statement.text.lower()
    ended = [
        text.find(own.value.text.lower())
        for own in (belongings(statement.note) if ends else ())
        if own.value.text.lower() in text and any(is_named(own.value, end.value) for end in ends)
    ]
    language = language_of(statement.note.content) if ended else None
    if language is None:
        return statement
    beside = language.beside.search(text)
    if beside is None or beside.start() > min(ended):
        return None
    shown = statement.text[: beside.start()].rstrip(" ,")
    return statement._replace(text=shown, tokens=frozenset(tokenize(shown)))


def _without(statement: Statement, replaced: Collection[str]) -> Statement | None:
    """Return a statement of the clauses with facts that are not ``replaced``; None if there are none."""
    if not replaced:
        return statement
    facts = tuple(fact for fact in statement.facts if fact.text not in replaced)
    text = ", ".join(dict.fromkeys(fact.text for fact in facts))
    return _statement(statement.note, statement.person, text, facts, statement.weight) if facts else None


def _lines(
    person: str, spoken: Sequence[Statement], latest: datetime | None, chars: int, count: int
) -> list[ProfileLine]:
    """Return lines for the best statements that differ, in order of time."""
    spoken = _weightiest(spoken, COMPARED)
    alike = [[_likeness(one, other) for other in spoken] for one in spoken]
    rank = [
        (each.is_instruction, each.weight + log(_days(spoken, likeness)))
        for each, likeness in zip(spoken, alike, strict=True)
    ]
    penalty = [0.0] * len(spoken)
    lines: dict[int, ProfileLine] = {}
    remaining = list(range(len(spoken)))
    while remaining and len(lines) < count:
        best = max(remaining, key=lambda place: (rank[place][0], rank[place][1] - penalty[place], place))
        remaining.remove(best)
        line = _line(person, spoken, best, alike[best], latest)
        if len(_bullet(line)) < chars:
            chars -= len(_bullet(line)) + 1
            lines[best] = line
        for place, other in enumerate(spoken):
            shared = len(other.tokens & spoken[best].tokens) / max(min(len(other.tokens), len(spoken[best].tokens)), 1)
            penalty[place] = max(penalty[place], PENALTY * max(shared - SIMILAR, 0.0))
        remaining = [place for place in remaining if alike[best][place] < SAME]
    return [lines[place] for place in sorted(lines)]


def _is_over(statement: Statement, latest: datetime | None) -> bool:
    """Return whether a statement was true for some weeks only, or is a plan for a past day.

    Examples: "I'm staying with my sister for now.", months ago; "The trip is this Friday."
    """
    stated_at = statement.note.occurred_at
    if latest is None or stated_at is None:
        return False
    if statement.note.valid_to is not None and statement.note.valid_to > latest:
        return False
    if statement.facts and all(fact.temporary and fact.attribute in _PASSING for fact in statement.facts):
        return latest - stated_at > RECENT_SPAN
    if any(fact.attribute not in _ABOUT_OTHERS for fact in statement.facts):
        return False
    days = find_dates(statement.text, stated_at) if _DATED.search(statement.text) else []
    return bool(days) and all(stated_at < day.end <= latest for day in days)


def _likeness(one: Statement, other: Statement) -> float:
    """Return the share of the words of two statements that they have in common."""
    return len(one.tokens & other.tokens) / max(len(one.tokens | other.tokens), 1)


def _stated_on(spoken: Sequence[Statement], likeness: Sequence[float]) -> list[datetime]:
    """Return the first time of each day of nearly the same statements."""
    times = sorted(
        time for each, overlap in zip(spoken, likeness, strict=True) if overlap >= SAME for time in each.times
    )
    return list({time.date(): time for time in reversed(times)}.values())[::-1]


def _days(spoken: Sequence[Statement], likeness: Sequence[float]) -> int:
    return max(len(_stated_on(spoken, likeness)), 1)


def _line(
    person: str, spoken: Sequence[Statement], place: int, likeness: Sequence[float], latest: datetime | None
) -> ProfileLine:
    statement, times = spoken[place], _stated_on(spoken, likeness)
    is_recent = bool(times) and len(times) == 1 and latest is not None and latest - times[0] <= RECENT_SPAN
    head = INSTRUCTIONS_HEAD if statement.is_instruction else RECENT_HEAD if is_recent else LASTING_HEAD
    dates = f" ({len(times)} days, {span([times[0], times[-1]])})" if len(times) > 1 else ""
    if len(times) == 1:
        dates = f" ({times[0].date().isoformat()})"
    sources = (statement.note.id, *sorted(e.note.id for e, o in zip(spoken, likeness, strict=True) if o >= SAME))
    return ProfileLine(head, person, f"{statement.text}{dates}", tuple(dict.fromkeys(sources)))


def _bullet(line: ProfileLine) -> str:
    return f"- {clip(line.person, MAX_TERM)}: {line.text}"


def _order(statement: Statement) -> tuple[float, int, str]:
    last = max((time.timestamp() for time in statement.times), default=0.0)
    return last, statement.note.seq, statement.text
