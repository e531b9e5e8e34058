"""Confidence of statements that contradict each other: a weighted vote of independent sources.

The model is the vote of truth discovery (Li et al. 2016, "A Survey on Truth Discovery"; the formula is that of Dong et
al. 2009, "Integrating Conflicting Data", without copying): if each source is right with the chance ``ACCURACY``, a side
with the votes S against O is right with the chance 1 / (1 + odds ** (O - S)), where odds = ACCURACY / (1 - ACCURACY).

- A **source** is a speaker, or the file or session of a statement without a speaker. Its repetitions in other sessions,
  on other days and in other files count half, a quarter, ..., so that no source has more than two votes.
- **Trust** scales a vote, see :mod:`zettel.core.authority`: a person 1, an assistant 0.75, a tool or a document 0.5, a
  text that looks like instructions half of that. A statement of lower trust counts neither against one of higher trust,
  nor for another one that a statement of higher trust contradicts.
- **Recency** scales it too: a vote halves for every ``HALF_LIFE_DAYS`` before the latest statement of the dispute.

A statement is supported by all statements that contradict the same statement, but not the supported one. So sides
follow from the CONTRADICTS links alone, in any number of words. All functions are pure, and nothing is stored: every
read computes the confidence from the notes and links of that moment. So it does not depend on the order of
jobs, and a deleted or reverted note does not count.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from zettel.core.authority import may_replace
from zettel.model import REPLACING, EventRecord, Link, LinkType, Note
from zettel.text.statements import parse_sentences

ACCURACY = 0.8
"""The chance that a person's statement is right. Three votes ahead mean a confidence of 0.98."""
HALF_LIFE_DAYS = 730
"""The age at which a vote counts half. Facts in dispute rarely change within months without a word of correction."""
OUTVOTED = 0.45
"""The confidence below which other answers rank first. An equal vote is not a verdict, even if one side is older."""
LEAST_FACTOR = 0.5
"""The factor on the score of a note with a confidence of 0."""


_CORRECTS = re.compile(r"\b(?:actually|correct(?:ion|ed|ing)|i was wrong|my mistake|scratch that|not .* but)\b")


class Statement(NamedTuple):
    """A statement in a dispute: its trust (0..1), and the events that made it."""

    trust: float
    events: tuple[EventRecord, ...]


class Witnesses(NamedTuple):
    """The numbers of independent writers for a statement, and for the statement that contradicts it."""

    support: int
    opposition: int


Id = TypeVar("Id", str, int)
"""The id or the row of a note."""


def dispute_of(pairs: Iterable[tuple[Id, Id]]) -> dict[Id, frozenset[Id]]:
    """Return the notes that contradict each note, from pairs in either direction."""
    opponents: dict[Id, set[Id]] = defaultdict(set)
    for first, second in pairs:
        opponents[first].add(second)
        opponents[second].add(first)
    return {id: frozenset(others) for id, others in opponents.items()}


def is_disputable(note: Note) -> bool:
    """Return whether a note counts in a dispute: it is neither archived nor superseded."""
    return not note.archived and note.valid_to is None


def confidences(dispute: Mapping[str, frozenset[str]], statements: Mapping[str, Statement]) -> dict[str, float]:
    """Return the confidence of each note in the dispute, 0 .. 1, rounded to two digits.

    Notes without a statement, such as archived ones, do not count. Of several contradicting notes the strongest
    counts.

    Example: four people against one have 0.98, the one has 0.02; one against one is 0.5 each. Against any number of
    pages, a person has 1.
    """
    opponents = {id: frozenset(others & statements.keys()) for id, others in dispute.items() if id in statements}
    return {
        id: min(_confidence(id, *sides(opponents, id, other), statements) for other in sorted(others))
        for id, others in sorted(opponents.items())
        if others
    }


def witnesses(dispute: Mapping[str, frozenset[str]], statements: Mapping[str, Statement]) -> dict[str, Witnesses]:
    """Return the numbers of independent writers for and against each note in the dispute.

    Several statements of one writer count once. Of several contradicting notes that with most writers counts.
    """
    opponents = {id: frozenset(others & statements.keys()) for id, others in dispute.items() if id in statements}
    counted: dict[str, Witnesses] = {}
    for id, others in sorted(opponents.items()):
        pairs = [tuple(_writers(side, statements) for side in sides(opponents, id, other)) for other in sorted(others)]
        if pairs:
            counted[id] = Witnesses(*max(pairs, key=lambda pair: pair[1]))
    return counted


def _writers(notes: Iterable[str], statements: Mapping[str, Statement]) -> int:
    return len({_writer(event) for note in notes for event in statements[note].events})


def sides(dispute: Mapping[str, frozenset[str]], first: str, second: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the notes that support each of two contradicting notes, themselves included."""
    for_first, for_second = dispute[second] - dispute[first], dispute[first] - dispute[second]
    return for_first | {first}, for_second | {second}


def _confidence(id: str, ours: Iterable[str], theirs: Iterable[str], statements: Mapping[str, Statement]) -> float:
    entitled = [other for other in theirs if statements[other].trust >= statements[id].trust]
    if not entitled:
        return 1.0
    level = max(statements[other].trust for other in entitled)
    if statements[id].trust < level:  # copies of a page do not outvote a person
        ours = [each for each in ours if each == id or statements[each].trust >= level]
    sided = [[statements[each] for each in sorted(ids)] for ids in (ours, entitled)]
    times = [
        event.occurred_at for side in sided for statement in side for event in statement.events if event.occurred_at
    ]
    latest = max(times, default=None)
    support, opposition = (votes(side, latest) for side in sided)
    odds = ACCURACY / (1 - ACCURACY)
    return round(1 / (1 + math.pow(odds, opposition - support)), 2)


def votes(statements: Sequence[Statement], latest: datetime | None) -> float:
    """Return the votes of statements that support each other; ``latest`` is the time of the whole dispute.

    An event without a time has no age.
    """
    by_source: dict[tuple[str | None, ...], dict[tuple[str, ...], float]] = defaultdict(dict)
    for statement in statements:
        for event in statement.events:
            weight = statement.trust * _recency(event.occurred_at, latest)
            repetitions = by_source[_source(event)]
            occasion = _occasion(event)
            repetitions[occasion] = max(repetitions.get(occasion, 0.0), weight)
    # The best repetition counts fully, the next ones half, a quarter, ...
    return sum(
        weight * 0.5**place
        for _, repetitions in sorted(by_source.items(), key=lambda item: str(item[0]))
        for place, weight in enumerate(sorted(repetitions.values(), reverse=True))
    )


def ranking_factor(confidence: float) -> float:
    """Return the factor on the score of a note in a dispute: 1 for a certain one, at least LEAST_FACTOR."""
    return LEAST_FACTOR + (1 - LEAST_FACTOR) * confidence


def weighed_link(link: Link, newer: Note, older: Note) -> Link:
    """Return a link that the rules found, as CONTRADICTS if the newer note may not replace or update the older one.

    A note replaces no note of higher trust. A statement replaces that of another speaker only if it states a
    change: "The code is 5678." of Eve contradicts Ann's "The code is 1234.", and a vote decides.
    """
    is_same_speaker = (newer.speaker or "").casefold() == (older.speaker or "").casefold()
    if may_replace(newer, older) and (is_same_speaker or _states_change(newer)):
        return link
    return as_contradiction(link)


def as_contradiction(link: Link) -> Link:
    """Return a SUPERSEDES or UPDATES link as CONTRADICTS, and any other link as it is."""
    return link.model_copy(update={"type": LinkType.CONTRADICTS}) if link.type in REPLACING else link


def _states_change(note: Note) -> bool:
    return any(sentence.changed or _CORRECTS.search(sentence.low) for sentence in parse_sentences(note.content))


def _source(event: EventRecord) -> tuple[str | None, ...]:
    """Return the source of an event: its speaker, else its file, else its session."""
    if event.speaker:
        return "speaker", event.speaker.casefold(), event.role
    return ("file", event.source.file) if event.source else ("session", event.session)


def _writer(event: EventRecord) -> tuple[str | None, ...]:
    """Return the writer of an event. One without full trust may choose any speaker, and counts once."""
    if event.principal and event.ceiling < 1:
        return ("principal", event.principal)
    return event.principal, *_source(event)


def _occasion(event: EventRecord) -> tuple[str, ...]:
    """Return the occasion of an event: its session, day and file. A source has one vote per occasion."""
    day = event.occurred_at.date().isoformat() if event.occurred_at else ""
    return event.session or "", day, event.source.file if event.source else ""


def _recency(when: datetime | None, latest: datetime | None) -> float:
    return math.pow(0.5, (latest - when) / timedelta(days=HALF_LIFE_DAYS)) if when and latest else 1.0
