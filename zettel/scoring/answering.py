"""Which of the best notes answer a question about a current state, by the statements in them.

Words and vectors find notes on the same topic. A question that asks for one fact (where Ann lives, what a ticket costs)
needs more: a claim about its subject with a value of the requested kind. Among equal answers the latest ranks first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING, NamedTuple

from zettel.model import Kind
from zettel.scoring.first_person import Verdict, judge, parse_own_question
from zettel.text.mood import Mood
from zettel.text.names import find_names
from zettel.text.statements import Matter, ParsedSentence, matter_of, parse_sentences
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from zettel.model import Note

ANSWER_DEPTH = 20
"""Best notes to examine. Answers that words and vectors rank lower are rare."""
MAX_QUESTION_CHARACTERS = 1_000
"""Longest question to examine. A longer text is a pasted document."""
FIRST_HITS = 10
"""Best notes that only an answer from further down can overtake."""
MIN_COVERAGE = 0.6
"""Least share of the topic tokens in an answer."""
TIE_MARGIN = 1.5
"""Log-odds within which answers with equally many topic tokens are equal, so that the latest wins."""
PLACE_PENALTY = 0.7
"""Penalty in log-odds per ln(1 + place)."""
SUPPOSED, DOUBTED, QUESTION = -4.0, -2.0, -3.0
ABOUT, NOT_ABOUT = 2.0, -2.0
FIELD, VALUE, TOPIC, PAST, FACT = 1.5, 3.0, 3.0, -3.0, 2.0
"""Log-odds for each property of a statement: round numbers, chosen by hand."""

_STATE_PATTERN = re.compile(
    r"^\W*(?:(?:can|could|would) you (?:please )?(?:tell|give)|(?:please )?(?:tell|give|remind) (?:me|us)\b"
    r"|(?:do you know )?(?:(?:in|at|on|for|to|with|by) )?(?:who|whom|whose|what|which|where|when|how)\b[^?.!]*?\b"
    r"(?:is|'s|does|do (?:i|we|you)|costs?|takes?|looks?|lives?|works?|runs?|owns?|keeps?)\b|(?:is|does)\b)",
    re.IGNORECASE,
)
_NOT_STATE_PATTERN = re.compile(
    r"\b(?:did|was|were|had|been|used to|ago|last|yesterday|would|could|might|why|are|kinds?|types?|some|feel|think"
    r"|one of"
    r"|in common|both|many|often|long|ways|going to|planning|about|want)\b(?! you)"
    r"|\b(?:what|which) (?:\w+ ){0,2}?\w*[^\Wsui]s (?:do|does|has|have)\b|\b(?:has|have) (?:\w+ ){1,2}(?:\w+ed|done"
    r"|made|taken|won)\b",
    re.IGNORECASE,
)
_MONEY = re.compile(r"\b(?:how much|costs?|prices?|pay)\b", re.IGNORECASE)
_DAY = re.compile(r"\b(?:(?:what|which) (?:day|date)|when (?:is|are)|for when)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\b(?:numbers?|codes?|password|pin|space|seat|extension|version|limit|timeout|age)\b", re.IGNORECASE
)
_NAME = re.compile(r"\b(?:who|whom|whose|name of)\b", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:where|(?:which|what) (?:town|city|country|place))\b", re.IGNORECASE)
_EMPLOYER = re.compile(
    r"\b(?:employ(?:er|ed|s)|(?:which|what) (?:company|firm)|(?:where|who)\b.*\b(?:work|works|job))\b", re.IGNORECASE
)
_VALUES = (
    ("money", _MONEY), ("day", _DAY), ("number", _NUMBER), ("post", _EMPLOYER), ("place", _PLACE), ("name", _NAME)
)  # fmt: skip
"""Kinds of values, most reliable pattern first."""
_ANSWER_KIND_TOKENS = frozenset(
    tokenize(
        "town city place day date time name set value tell give know fixed home live living job work working"
        " employer employed"
        " company firm like best fond favourite favorite responsible charge look care take cost price use thing"
    )
)
"""Tokens that name the kind of the answer and not its topic."""


_IN_DIGITS = frozenset({"money", "day", "number"})
"""Kinds of values that contain a digit, possibly in a form that the parser does not know."""
_DIGIT = re.compile(r"\d")


class StateQuestion(NamedTuple):
    """A question about a current state: tokens of its subject and of its topic, lexical fields, and kind of value."""

    subject: frozenset[str]
    topic: frozenset[str]
    matter: Matter
    value: str


def parse_state_question(text: str) -> StateQuestion | None:
    """Parse a question about one current state; None for any other question."""
    if len(text) > MAX_QUESTION_CHARACTERS or not _STATE_PATTERN.search(text) or _NOT_STATE_PATTERN.search(text):
        return None
    subject = frozenset(token for name in find_names(text) for token in tokenize(name.text))
    topic = frozenset(tokenize(text)) - subject - _ANSWER_KIND_TOKENS
    value = next((kind for kind, form in _VALUES if form.search(text)), "")
    return StateQuestion(subject, topic, matter_of(text.lower().replace("?", " ").split()), value)


class AnswerScore(NamedTuple):
    """Score of a note in log-odds, whether it answers, and the number of topic tokens in its best sentence."""

    score: float
    answers: bool
    matched: int = 0
    is_refuted: bool = False


_OWN_SCORES = {
    Verdict.ANSWERS: AnswerScore(ABOUT + VALUE, True),
    Verdict.UNSURE: AnswerScore(0.0, False),
    Verdict.REFUTED: AnswerScore(NOT_ABOUT, False, is_refuted=True),
}


def score_note(question: StateQuestion, note: Note, speakers: Collection[str] = ()) -> AnswerScore:
    """The score of the note's best sentence. An insight never answers: it repeats other notes."""
    if note.kind is Kind.INSIGHT:
        return AnswerScore(NOT_ABOUT, False)
    speaker = frozenset(tokenize(note.speaker)) if note.speaker else frozenset()
    scores = [_score_statement(question, statement, speaker, speakers) for statement in parse_sentences(note.content)]
    best = max(scores, default=AnswerScore(0.0, False))._replace(is_refuted=all(score.is_refuted for score in scores))
    return best._replace(score=best.score + FACT) if note.kind is Kind.SEMANTIC else best


def _score_statement(
    question: StateQuestion, statement: ParsedSentence, speaker: frozenset[str], speakers: Collection[str]
) -> AnswerScore:
    matched = len(question.topic & statement.stated)
    coverage = matched / len(question.topic) if question.topic else 1.0
    is_claim = statement.mood is Mood.CLAIMED and not statement.is_question and not statement.past
    is_about = not question.subject or _is_about(question.subject, statement, speaker)
    in_field = bool(question.matter & statement.matter)
    has_value = not question.value or _has_value(question, statement, speakers)
    score = TOPIC * coverage if question.topic else 0.0
    score += SUPPOSED if statement.mood is Mood.SUPPOSED else DOUBTED if statement.mood is Mood.DOUBTED else 0.0
    score += (QUESTION if statement.is_question else 0.0) + (PAST if statement.past else 0.0)
    score += (ABOUT if is_about else NOT_ABOUT) if question.subject else 0.0
    score += (FIELD if in_field else 0.0) + (VALUE if question.value and has_value else 0.0)
    is_covered = coverage >= (MIN_COVERAGE if question.value else 1.0) and (in_field or bool(question.topic))
    fits = is_claim and is_about and is_covered
    may_answer = fits and (has_value or (question.value in _IN_DIGITS and bool(_DIGIT.search(statement.text))))
    return AnswerScore(score, fits and has_value, matched, not may_answer)


def _is_about(subject: frozenset[str], statement: ParsedSentence, speaker: frozenset[str]) -> bool:
    if statement.kin:
        return False
    if not subject.isdisjoint(speaker):
        return statement.is_first_person
    return not subject.isdisjoint(statement.tokens)


def _has_value(question: StateQuestion, statement: ParsedSentence, speakers: Collection[str]) -> bool:
    """True if the statement has a value of the requested kind which the question does not contain itself."""
    if question.value == "money":
        return bool(statement.amounts)
    if question.value == "day":
        return bool(statement.days)
    if question.value == "number":
        return bool(statement.numbers)
    if question.value in ("place", "post"):
        places = statement.located if question.value == "place" else statement.posts
        return any(place not in speakers and question.subject.isdisjoint(tokenize(place)) for place in places)
    known = question.subject | question.topic
    names_others = any(not tokens <= known for _, tokens in statement.names)
    return names_others or (statement.is_first_person and not question.subject)


class AnswerOrder(NamedTuple):
    """Places of the notes, best answer first, and the scores of the notes in their former order."""

    places: list[int]
    scores: list[float]


def order_answers(
    text: str,
    notes: Sequence[Note],
    speakers: Collection[str] = (),
    replaced: Mapping[int, int] | None = None,
) -> AnswerOrder | None:
    """Order the best notes by how well they answer a question; None if no note answers.

    ``speakers`` are the speakers of the scope. ``replaced`` maps the place of a note to that of its replacement. The
    replacement of an answer is an answer.
    """
    question = parse_state_question(text)
    if question is None or len(notes) < 2:
        return None
    replaced = replaced or {}
    is_chat = any(note.role is not None for note in notes)  # else "I" is one of several people
    own = parse_own_question(text, question.value, _ANSWER_KIND_TOKENS) if is_chat else None
    if own is None:
        results = [score_note(question, note, speakers) for note in notes]
    else:
        results = [_OWN_SCORES[judge(own, note)] for note in notes]
    if is_chat and not (results[0].answers or results[0].is_refuted):
        return None  # the scorer's first note may be an answer
    for place, result in enumerate(results):
        if not question.value and place >= FIRST_HITS:
            results[place] = result._replace(answers=False)
    for old, new in sorted(replaced.items(), key=lambda pair: notes[pair[0]].seq):
        if results[old].answers and not (own and results[new].is_refuted):
            results[new] = AnswerScore(
                max(results[new].score, results[old].score), True, max(results[new].matched, results[old].matched)
            )
    answers = [result for result in results if result.answers]
    if not answers:
        return None
    least = max(result.score for result in answers) - TIE_MARGIN
    most = max(result.matched for result in answers)  # "garden gate": the gate of the house is another gate
    scores = [result.score - PLACE_PENALTY * log1p(place) for place, result in enumerate(results)]

    def rank(place: int) -> tuple[int, float, float]:
        valid_from, result = notes[place].valid_from, results[place]
        if not result.answers:
            return (2, 0.0, -scores[place]) if place < FIRST_HITS else (3, 0.0, place)
        if result.score < least or result.matched < most or place in replaced:
            return 1, 0.0, -scores[place]
        return 0, -valid_from.timestamp() if valid_from else 0.0, -scores[place]

    return AnswerOrder(sorted(range(len(notes)), key=rank), scores)
