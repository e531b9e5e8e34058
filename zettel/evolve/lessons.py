"""Learns lessons: how to act, from the outcomes of earlier actions.

An event may report an outcome: an action in a situation went well or badly ("Restarting the worker fixed the upload.",
"That worked.", or the metadata ``outcome=success``). The turns just before it resolve "that". A situation with two
outcomes becomes a lesson, "When X: Y", with the best action and one that failed. Its confidence is the mean of a Beta
distribution with a flat prior: (successes + 1) / (successes + failures + 2). Feedback on the lesson counts like the
outcomes. Situations are the same if they share most of their words.

The result of a tool also reports an outcome: by the metadata ``outcome``, which imported traces set, or as an error
message. The situation is then the task, which is the last message of a user before it, and the action is the call.

English words indicate outcomes of messages; outcomes of tools have no language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, get_args

from pydantic import JsonValue

from zettel.llm.prompt_lines import clip
from zettel.model import Kind, Note, NoteUse
from zettel.model import Outcome as OutcomeLabel
from zettel.text.extraction import is_question, sentences
from zettel.text.keywords import find_terms
from zettel.text.tokens import tokenize

MIN_OUTCOMES = 2
"""The fewest outcomes in one situation for a lesson."""
MIN_OVERLAP = 0.6
"""The lowest share of the smaller set of words that equal situations, or equal actions, have in common."""
MAX_PART = 120
"""The most characters of a situation and of an action."""
ADVISED = 0.5
"""The lowest confidence of a recommended action; lessons advise against an action below it."""
MIN_CONFIDENCE = 0.35
"""The lowest confidence of a lesson; lessons below it are archived. Two failures alone suffice."""
OUTCOME = "outcome"
"""The metadata field with the outcome of an event: "success" or "failure"."""
_LABELS = get_args(OutcomeLabel)
MAX_OUTCOMES = 1000
"""The most outcomes that lessons are learned from, the latest ones."""
MAX_BEFORE = 2
"""The turns just before an outcome that may contain its situation and action."""
MAX_ACT_WORDS = 8
"""The most words of an action in the sentence of the outcome."""

_THIS = r"it|this|that|the (?:problem|issue|bug|error|trouble)"
_NEVER = r"(?:never|(?:has|have|had)(?:n't| not))(?: really)?"
_WELL = re.compile(
    r"^(?P<act>.+?\S)\s+(?:has |have |finally |really |just |also |then )*"
    r"(?:(?:fixed|solved|resolved|cured|cleared up)\s+(?P<what>[^.,;!]+)"
    r"|(?:worked|works now|helped|did the trick|did it))"
    r"(?P<rest>[^.,;!]*)[.,;!]?",
    re.IGNORECASE,
)
_BADLY = re.compile(
    r"^(?P<act>.+?\S)\s+(?:has |have |then |just |also )*"
    r"(?:(?:broke|did not fix|didn't fix|did not solve|didn't solve"
    rf"|{_NEVER} (?:fixed|solved|resolved|cured|cleared up))\s+(?P<what>[^.,;!]+)"
    rf"|(?:failed|(?:did not|didn't|does not|doesn't) (?:work|help)|{_NEVER} (?:worked|helped)"
    r"|made (?:it|things) worse|was no help))"
    r"(?P<rest>[^.,;!]*)[.,;!]?",
    re.IGNORECASE,
)
_REFERS = re.compile(rf"(?:(?:and|so|yes|yep|yeah|ok|okay|great|no|well|but)[, ]+)*(?:{_THIS}|which)$", re.IGNORECASE)
_NO_ACT = re.compile(
    r"[,;:\u2013\u2014]|\s-\s|(?<!\w)(?:i|we|you|they|he|she|who|there)(?!\w)|'(?:s|re|ve|ll|d|m)(?!\w)", re.IGNORECASE
)
"""Signs and words that a clause may contain, but an action may not."""
_UNSURE = re.compile(
    r"^(?:if|unless|until|whether|maybe|perhaps|hopefully)\s"
    r"|(?<!\w)(?:may|might|could|would|should|must|almost|nearly|hardly|barely|no longer)$",
    re.IGNORECASE,
)
"""The beginning or end of a clause that does not report an outcome."""
_PERSON = re.compile(r"\s*(?:me|us|him|her|them|you|people|others|everyone|to)(?!\w)", re.IGNORECASE)
"""The words after "helped" if the thing helped a person to do something else."""
_TROUBLE = re.compile(
    r"(?<!\w)(?:fail\w*|errors?|broke\w*|breaks?|stuck|slow\w*|crash\w*|tim(?:e|es|ed|ing) ?-?out|timeouts?|problems?"
    r"|issues?|bugs?|trouble|wrong|can't|cannot|couldn't|(?:does|do|did|wo|is)n't|(?:does|do|did|will|is) not|empty"
    r"|missing|lost|late|leak\w*|hurts?|sick|ill|stopp?\w*|hang\w*|flaky|red|refus\w*|reject\w*|denied|conflict\w*|duplicate\w*)(?!\w)",
    re.IGNORECASE,
)
"""Words of a turn that describes a problem; a question also describes one."""
_FOR = re.compile(r"^\s*(?:for|with|against|on)\s+(?P<what>.+)$", re.IGNORECASE)


_ERROR = re.compile(
    r"Traceback \(most recent call last\)|(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b|[Ee]rror\s?:|ERROR\b|fatal:"
)
"""The beginning of an error message of a tool."""
MAX_ARGUMENT = 40
"""The most characters of an argument of a call."""
TOOL_BEFORE = 2
"""The turns before a tool's result that are read: the task, and the turn just before, which contains the call."""


class Outcome(NamedTuple):
    """An action in a situation and whether it went well, with its source notes."""

    situation: str
    act: str
    well: bool
    notes: tuple[str, ...]
    where: frozenset[str]
    what: frozenset[str]


class Way(NamedTuple):
    """An action, and how often it went well and badly."""

    act: str
    well: int
    badly: int

    @property
    def confidence(self) -> float:
        """The mean of Beta(1 + well, 1 + badly)."""
        return beta_mean(self.well, self.badly)


class Lesson(NamedTuple):
    """Advice for a situation: the best action, one that failed, and the source notes.

    ``well`` and ``badly`` count the outcomes for the lesson and against it.
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
    """Return (well + 1) / (well + badly + 2), rounded to two digits."""
    return round((well + 1) / (well + badly + 2), 2)


def confidence(lesson: Lesson, use: NoteUse | None) -> float:
    """Return the confidence of a lesson from its notes and from feedback."""
    return beta_mean(lesson.well + (use.successes if use else 0), lesson.badly + (use.failures if use else 0))


def applies(lesson: str, task: str) -> bool:
    """Return whether a lesson ("When X: Y.") is about a situation like a task."""
    situation = lesson.removeprefix("When ").partition(": ")[0]
    return _overlap(_words(situation), _words(task)) >= MIN_OVERLAP


def may_report_outcome(note: Note) -> bool:
    """Return whether a note may report an outcome."""
    if note.kind is not Kind.EPISODIC or note.part:
        return False
    if note.metadata.get(OUTCOME) in _LABELS:
        return True
    if note.role == "tool":
        return _ERROR.match(note.content) is not None
    texts = [sentence.replace("\u2019", "'") for sentence in sentences(note.content)]
    return any(pattern.match(text) for text in texts for pattern in (_WELL, _BADLY))


def outcomes(note: Note, before: Sequence[tuple[str, str]]) -> list[Outcome]:
    """Return the outcomes that a note reports: at most one success and one failure, in the same situation.

    ``before`` contains the id and content of the turns just before it in its session, the latest last; before the
    result of a tool, the task and the turn just before.
    """
    if not may_report_outcome(note):
        return []
    label = note.metadata.get(OUTCOME)
    if note.role == "tool":
        return _of_tool(note, label == "success" if label in _LABELS else False, before)
    if label in _LABELS:
        return _outcomes(note.title or (before[-1][1] if before else ""), note.content, label == "success", note.id,
                         () if note.title else before[-1:])  # fmt: skip
    reported: list[Outcome] = []
    for sentence in sentences(note.content):
        for pattern, well in ((_BADLY, False), (_WELL, True)):
            match = None if is_question(sentence) else pattern.match(sentence.replace("\u2019", "'"))
            if match:
                # "That worked! Restarting fixed it." is one success, and each note counts for one lesson only.
                reported += [
                    new
                    for new in _parse(match, well, note.id, before)
                    if all(
                        new.well is not old.well and _overlap(new.where, old.where) >= MIN_OVERLAP for old in reported
                    )
                ]
                break
    return reported


def lessons(outcomes: Sequence[Outcome]) -> list[Lesson]:
    """Return one lesson per situation with MIN_OUTCOMES or more, independent of their order.

    Takes quadratic time: pass at most MAX_OUTCOMES.
    """
    learned: list[Lesson] = []
    for group in _groups(sorted(outcomes, key=_order), "where"):
        if len(group) < MIN_OUTCOMES:
            continue
        ways = [_way(same) for same in _groups(group, "what")]
        ranked = sorted(ways, key=lambda way: (-way.confidence, -way.well, way.act))
        do = ranked[0] if ranked[0].confidence >= ADVISED else None
        worst = min(ranked, key=lambda way: (way.confidence, -way.badly, way.act))
        avoid = worst if worst.confidence < ADVISED else None
        well, badly = (do.well, do.badly) if do else (worst.badly, worst.well)
        notes = tuple(dict.fromkeys(note for outcome in group for note in outcome.notes))
        learned.append(Lesson(_shortest([outcome.situation for outcome in group]), do, avoid, well, badly, notes))
    return learned


def _of_tool(note: Note, well: bool, before: Sequence[tuple[str, str]]) -> list[Outcome]:
    """Return the outcome of a call of a tool for a task."""
    if len(before) < TOOL_BEFORE:
        return []
    (_, task), *_, (_, turn) = before
    act = call_text(str(note.metadata.get("tool") or note.speaker or ""), note.metadata.get("call"), turn)
    return _outcomes(task, act, well, note.id, before)


def call_text(tool: str, call: JsonValue, turn: str) -> str:
    """Return a call as text, with the arguments that ``turn`` contains as JSON: "call measure (tree: birch)"."""
    try:
        calls = json.loads(turn).get("calls", [])
    except (ValueError, AttributeError, RecursionError):  # a message in words, or other JSON
        calls = []
    own = [each for each in calls if isinstance(each, dict) and each.get("tool") == tool]
    own = [each for each in own if each.get("id") == call] or own
    arguments = own[0].get("input") if len(own) == 1 else None
    given = arguments.items() if isinstance(arguments, dict) else ()
    text = ", ".join(f"{name}: {clip(str(value), MAX_ARGUMENT)}" for name, value in given)
    return f"call {tool} ({text})" if text else f"call {tool}"


def _parse(match: re.Match[str], well: bool, note: str, before: Sequence[tuple[str, str]]) -> list[Outcome]:
    """Return the outcome in a sentence; earlier turns resolve its references."""
    earlier = list(before[-MAX_BEFORE:])
    used: list[tuple[str, str]] = []
    act, what = match["act"].strip(" ,"), (match["what"] or "").strip()
    if not what and (named := _FOR.match(match["rest"])):
        what = named["what"].strip()
    if _REFERS.fullmatch(act):
        if not earlier:
            return []
        used.append(earlier.pop())
        act = used[-1][1]
    elif len(act.split()) > MAX_ACT_WORDS or _NO_ACT.search(act) or _UNSURE.search(act) or _PERSON.match(match["rest"]):
        return []
    if not what or re.fullmatch(_THIS, what, re.IGNORECASE):
        trouble = [turn for turn in earlier if is_question(turn[1]) or _TROUBLE.search(turn[1])]
        if not trouble:
            return []
        used.append(trouble[-1])
        what = used[-1][1]
    return _outcomes(what, act, well, note, used)


def _outcomes(situation: str, act: str, well: bool, note: str, used: Sequence[tuple[str, str]]) -> list[Outcome]:
    where, what = _words(situation), _words(act)
    if not where or not what:
        return []
    notes = (note, *(id for id, _ in used))
    return [Outcome(_phrase(situation), _phrase(act), well, notes, where, what)]


def _words(text: str) -> frozenset[str]:
    terms = find_terms(text)
    name_tokens = {token for name in terms.names for token in tokenize(name.text)}
    return frozenset(name_tokens | {word.key for word in terms.words})


def _phrase(text: str) -> str:
    """Return the first sentence of a text as a phrase: without final punctuation and initial capital."""
    first = (sentences(text) or [""])[0].rstrip(" .!?,;:")
    second = first[1:2]
    small = first[:1].lower() + first[1:] if second.islower() or (second == " " and first[:1] != "I") else first
    return clip(small, MAX_PART)


def _groups(outcomes: Sequence[Outcome], field: str) -> list[list[Outcome]]:
    """Group outcomes that share most of their words in a field."""
    groups: list[list[Outcome]] = []
    for outcome in outcomes:
        words: frozenset[str] = getattr(outcome, field)
        same = [
            group for group in groups if any(_overlap(words, getattr(other, field)) >= MIN_OVERLAP for other in group)
        ]
        groups = [group for group in groups if group not in same]
        groups.append([*(other for group in same for other in group), outcome])
    return sorted((sorted(group, key=_order) for group in groups), key=lambda group: _order(group[0]))


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    common, smaller = len(first & second), min(len(first), len(second))
    return 0.0 if common < min(2, smaller) else common / smaller


def _way(same: Sequence[Outcome]) -> Way:
    well = sum(outcome.well for outcome in same)
    return Way(_shortest([outcome.act for outcome in same]), well, len(same) - well)


def _shortest(texts: Sequence[str]) -> str:
    return min(texts, key=lambda text: (len(text), text))


def _times(way: Way, badly: bool = False) -> str:
    return f"{way.badly if badly else way.well} of {way.well + way.badly} times"


def _order(outcome: Outcome) -> tuple[str, str, bool]:
    return outcome.situation, outcome.act, outcome.well
