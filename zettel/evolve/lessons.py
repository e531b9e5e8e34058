"""Learns lessons: how to act, from the outcomes of earlier actions.

An event may tell of an outcome: something that was done, in some situation, went well or badly ("Restarting the worker
fixed the upload.", "That worked.", or the metadata ``outcome=success``). What "that" is stands just before it in the
session. Where one situation came up twice at least, what did best there becomes a lesson, "When X: Y", and what failed
is named with it. Its confidence is the mean of the Beta distribution over how often it goes well, from a flat start:
(successes + 1) / (successes + failures + 2), where what feedback says of the lesson itself counts like what the notes
say. Situations are the same if they share most of their telling words, whichever came first.

Outcomes are told by English words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, get_args

from zettel.llm.prompt_lines import clip
from zettel.model import Kind, Note, NoteUse
from zettel.model import Outcome as Ended
from zettel.text.extraction import is_question, sentences
from zettel.text.keywords import find_terms
from zettel.text.tokens import tokenize

TWICE = 2
"""Outcomes in one situation for a lesson."""
ALIKE = 0.6
"""Share of the smaller set of words that two situations, or two ways to act, have in common if they are the same."""
MAX_PART = 120
"""Characters of a situation and of a way to act."""
ADVISED = 0.5
"""Confidence from which on a way to act is advised; below it is advised against."""
DROPPED = 0.35
"""A lesson below this confidence goes to the archive: two failures and nothing else bring a new one there."""
OUTCOME = "outcome"
"""Metadata by which an event says itself how it went: "success" or "failure"."""
ENDS = get_args(Ended)
MAX_TOLD = 1000
"""Outcomes that are learned from, the last ones told."""
MAX_BEFORE = 2
"""Turns just before an outcome in which its situation and what was done are looked for."""
MAX_ACT_WORDS = 8
"""Words of a way to act that is named in the sentence itself."""

_THIS = r"it|this|that|the (?:problem|issue|bug|error|trouble)"
_NEVER = r"(?:never|(?:has|have|had)(?:n't| not))(?: really)?"
_WELL = re.compile(
    r"^(?P<act>.{2,}?)\s+(?:has |have |finally |really |just |also |then )*"
    r"(?:(?:fixed|solved|resolved|cured|cleared up)\s+(?P<what>[^.,;!]+)"
    r"|(?:worked|works now|helped|did the trick|did it))"
    r"(?P<rest>[^.,;!]*)[.,;!]?",
    re.IGNORECASE,
)
_BADLY = re.compile(
    r"^(?P<act>.{2,}?)\s+(?:has |have |then |just |also )*"
    r"(?:(?:broke|did not fix|didn't fix|did not solve|didn't solve"
    rf"|{_NEVER} (?:fixed|solved|resolved|cured|cleared up))\s+(?P<what>[^.,;!]+)"
    rf"|(?:failed|(?:did not|didn't|does not|doesn't) (?:work|help)|{_NEVER} (?:worked|helped)"
    r"|made (?:it|things) worse|was no help))"
    r"(?P<rest>[^.,;!]*)[.,;!]?",
    re.IGNORECASE,
)
_POINTS = re.compile(rf"(?:(?:and|so|yes|yep|yeah|ok|okay|great|no|well|but)[, ]+)*(?:{_THIS}|which)$", re.IGNORECASE)
_NO_ACT = re.compile(
    r"[,;:\u2013\u2014]|\s-\s|(?<!\w)(?:i|we|you|they|he|she|who|there)(?!\w)|'(?:s|re|ve|ll|d|m)(?!\w)", re.IGNORECASE
)
"""What stands in a clause but in no way to act."""
_UNSURE = re.compile(
    r"^(?:if|unless|until|whether|maybe|perhaps|hopefully)\s"
    r"|(?<!\w)(?:may|might|could|would|should|must|almost|nearly|hardly|barely|no longer)$",
    re.IGNORECASE,
)
"""What begins or ends such a clause if it tells of no outcome."""
_SOMEBODY = re.compile(r"\s*(?:me|us|him|her|them|you|people|others|everyone|to)(?!\w)", re.IGNORECASE)
"""What follows where something "helped me" to do another thing."""
_TROUBLE = re.compile(
    r"(?<!\w)(?:fail\w*|errors?|broke\w*|breaks?|stuck|slow\w*|crash\w*|tim(?:e|es|ed|ing) ?-?out|timeouts?|problems?"
    r"|issues?|bugs?|trouble|wrong|can't|cannot|couldn't|(?:does|do|did|wo|is)n't|(?:does|do|did|will|is) not|empty"
    r"|missing|lost|late|leak\w*|hurts?|sick|ill|stopp?\w*|hang\w*|flaky|red|refus\w*|reject\w*|denied|conflict\w*|duplicate\w*)(?!\w)",
    re.IGNORECASE,
)
"""A turn with one of these, or that asks, tells what the matter is."""
_FOR = re.compile(r"^\s*(?:for|with|against|on)\s+(?P<what>.+)$", re.IGNORECASE)


class Outcome(NamedTuple):
    """An action in a situation and whether it went well, with its source notes."""

    situation: str
    act: str
    well: bool
    notes: tuple[str, ...]
    where: frozenset[str]
    what: frozenset[str]


class Way(NamedTuple):
    """A way to act, and how often it went well and badly."""

    act: str
    well: int
    badly: int

    @property
    def confidence(self) -> float:
        """The mean of Beta(1 + well, 1 + badly)."""
        return beta_mean(self.well, self.badly)


class Lesson(NamedTuple):
    """What to do in a situation: the best way, one that failed, and the notes that tell so.

    ``well`` and ``badly`` are outcomes that speak for it and against it.
    """

    situation: str
    do: Way | None
    avoid: Way | None
    well: int
    badly: int
    notes: tuple[str, ...]

    @property
    def content(self) -> str:
        """The lesson as a sentence."""
        parts = [f"{self.do.act} (went well {_times(self.do)})"] if self.do else []
        parts += [f"not: {self.avoid.act} (went badly {_times(self.avoid, badly=True)})"] if self.avoid else []
        return f"When {self.situation}: {'; '.join(parts)}."


def beta_mean(well: int, badly: int) -> float:
    """(well + 1) / (well + badly + 2), rounded to two places: one outcome more moves it, and noise does not."""
    return round((well + 1) / (well + badly + 2), 2)


def confidence(lesson: Lesson, use: NoteUse | None) -> float:
    """Return the confidence of a lesson from its notes and from feedback."""
    return beta_mean(lesson.well + (use.successes if use else 0), lesson.badly + (use.failures if use else 0))


def tells_outcome(note: Note) -> bool:
    """Return whether a note may report an outcome."""
    if note.kind is not Kind.EPISODIC or note.part:
        return False
    if note.metadata.get(OUTCOME) in ENDS:
        return True
    told = [sentence.replace("\u2019", "'") for sentence in sentences(note.content)]
    return any(pattern.match(sentence) for sentence in told for pattern in (_WELL, _BADLY))


def outcomes(note: Note, before: Sequence[tuple[str, str]]) -> list[Outcome]:
    """What a note tells of outcomes: one success and one failure at most, in one situation. ``before``: id and content
    of the turns just before it in its session, the last one last."""
    if not tells_outcome(note):
        return []
    said = note.metadata.get(OUTCOME)
    if said in ENDS:
        return _made(note.title or (before[-1][1] if before else ""), note.content, said == "success", note.id,
                     () if note.title else before[-1:])  # fmt: skip
    found: list[Outcome] = []
    for sentence in sentences(note.content):
        for pattern, well in ((_BADLY, False), (_WELL, True)):
            match = None if is_question(sentence) else pattern.match(sentence.replace("\u2019", "'"))
            if match:
                # "That worked! Restarting fixed it." is one success, and each note speaks for one lesson alone.
                found += [
                    one
                    for one in _read(match, well, note.id, before)
                    if all(one.well is not other.well and _share(one.where, other.where) >= ALIKE for other in found)
                ]
                break
    return found


def lessons(told: Sequence[Outcome]) -> list[Lesson]:
    """Return one lesson per situation with two outcomes or more, whatever their order.

    Takes quadratic time: pass MAX_TOLD outcomes at most.
    """
    found: list[Lesson] = []
    for group in _alike(sorted(told, key=_order), "where"):
        if len(group) < TWICE:
            continue
        ways = [_way(same) for same in _alike(group, "what")]
        ranked = sorted(ways, key=lambda way: (-way.confidence, -way.well, way.act))
        do = ranked[0] if ranked[0].confidence >= ADVISED else None
        worst = min(ranked, key=lambda way: (way.confidence, -way.badly, way.act))
        avoid = worst if worst.confidence < ADVISED else None
        well, badly = (do.well, do.badly) if do else (worst.badly, worst.well)
        notes = tuple(dict.fromkeys(note for one in group for note in one.notes))
        found.append(Lesson(_shortest([one.situation for one in group]), do, avoid, well, badly, notes))
    return found


def _read(match: re.Match[str], well: bool, note: str, before: Sequence[tuple[str, str]]) -> list[Outcome]:
    """Return the outcome in a sentence; earlier turns resolve its references."""
    left = list(before[-MAX_BEFORE:])
    used: list[tuple[str, str]] = []
    act, what = match["act"].strip(" ,"), (match["what"] or "").strip()
    if not what and (named := _FOR.match(match["rest"])):
        what = named["what"].strip()
    if _POINTS.fullmatch(act):
        if not left:
            return []
        used.append(left.pop())
        act = used[-1][1]
    elif (
        len(act.split()) > MAX_ACT_WORDS or _NO_ACT.search(act) or _UNSURE.search(act) or _SOMEBODY.match(match["rest"])
    ):
        return []
    if not what or re.fullmatch(_THIS, what, re.IGNORECASE):
        trouble = [turn for turn in left if is_question(turn[1]) or _TROUBLE.search(turn[1])]
        if not trouble:
            return []
        used.append(trouble[-1])
        what = used[-1][1]
    return _made(what, act, well, note, used)


def _made(situation: str, act: str, well: bool, note: str, used: Sequence[tuple[str, str]]) -> list[Outcome]:
    where, what = _telling(situation), _telling(act)
    if not where or not what:
        return []
    notes = (note, *(id for id, _ in used))
    return [Outcome(_phrase(situation), _phrase(act), well, notes, where, what)]


def _telling(text: str) -> frozenset[str]:
    reading = find_terms(text)
    named = {token for name in reading.names for token in tokenize(name.text)}
    return frozenset(named | {word.key for word in reading.words})


def _phrase(text: str) -> str:
    """Return the first sentence of a text as a phrase: without final punctuation and initial capital."""
    first = (sentences(text) or [""])[0].rstrip(" .!?,;:")
    second = first[1:2]
    small = first[:1].lower() + first[1:] if second.islower() or (second == " " and first[:1] != "I") else first
    return clip(small, MAX_PART)


def _alike(told: Sequence[Outcome], field: str) -> list[list[Outcome]]:
    """Group outcomes that share most of their words."""
    groups: list[list[Outcome]] = []
    for one in told:
        words: frozenset[str] = getattr(one, field)
        same = [group for group in groups if any(_share(words, getattr(other, field)) >= ALIKE for other in group)]
        groups = [group for group in groups if group not in same]
        groups.append([*(other for group in same for other in group), one])
    return sorted((sorted(group, key=_order) for group in groups), key=lambda group: _order(group[0]))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    common = len(one & other)
    return 0.0 if common < min(2, len(one), len(other)) else common / min(len(one), len(other))


def _way(same: Sequence[Outcome]) -> Way:
    well = sum(one.well for one in same)
    return Way(_shortest([one.act for one in same]), well, len(same) - well)


def _shortest(texts: Sequence[str]) -> str:
    return min(texts, key=lambda text: (len(text), text))


def _times(way: Way, badly: bool = False) -> str:
    return f"{way.badly if badly else way.well} of {way.well + way.badly} times"


def _order(one: Outcome) -> tuple[str, str, bool]:
    return one.situation, one.act, one.well
