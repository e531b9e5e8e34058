"""Which of the best notes answer a question about a current state, by the statements in them.

Words and vectors find notes on the same topic. A question that asks for one fact (where Ann lives, what a ticket costs)
needs more: a claim about its subject with a value of the requested kind. Among equal answers the latest ranks first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
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
MIN_COVERAGE = 0.6
"""Least share of the topic tokens in an answer."""
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
_LOWER_NAME = re.compile(
    r"\b(?!(?:what|who|where|when|how|that|it|he|she|let|here|there)\b)([a-z]+)'s (?=[a-z])"
    r"|\bdoes (?!(?:he|she|it|my|our|his|her|their|your|the|this|that|an?|one)\b)([a-z]+) (?=(?:work|live|do|like)\b)"
)
"""A person whose name has no capital: "what's tom's job"."""
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
    names = [name.text for name in find_names(text)] or [one or other for one, other in _LOWER_NAME.findall(text)]
    subject = frozenset(token for name in names for token in tokenize(name))
    topic = frozenset(tokenize(text)) - subject - _ANSWER_KIND_TOKENS
    value = next((kind for kind, form in _VALUES if form.search(text)), "")
    return StateQuestion(subject, topic, matter_of(text.lower().replace("?", " ").split()), value)


class Judgement(NamedTuple):
    """The verdict on a note, and the number of topic tokens in its best sentence."""

    verdict: Verdict
    matched: int = 0


def judge_note(question: StateQuestion, note: Note, speakers: Collection[str] = ()) -> Judgement:
    """The judgement of the note's best sentence. An insight never answers: it repeats other notes."""
    if note.kind is Kind.INSIGHT:
        return Judgement(Verdict.UNSURE)
    speaker = frozenset(tokenize(note.speaker)) if note.speaker else frozenset()
    statements = parse_sentences(note.content)
    judgements = [_judge_statement(question, statement, speaker, speakers) for statement in statements]
    return max(judgements, default=Judgement(Verdict.REFUTED))


def _judge_statement(
    question: StateQuestion, statement: ParsedSentence, speaker: frozenset[str], speakers: Collection[str]
) -> Judgement:
    matched = len(question.topic & statement.stated)
    coverage = matched / len(question.topic) if question.topic else float(bool(question.matter & statement.matter))
    is_claim = statement.mood is Mood.CLAIMED and not statement.is_question and not statement.past
    is_about = not question.subject or _is_about(question.subject, statement, speaker)
    if not is_claim or not is_about or coverage < (MIN_COVERAGE if question.value else 1.0):
        return Judgement(Verdict.REFUTED, matched)
    if not question.value or _has_value(question, statement, speakers):
        return Judgement(Verdict.ANSWERS, matched)
    may_have_value = question.value in _IN_DIGITS and _DIGIT.search(statement.text)
    return Judgement(Verdict.UNSURE if may_have_value else Verdict.REFUTED, matched)


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
    """Places of the notes, best answer first, and the verdicts on the notes in their former order."""

    places: list[int]
    verdicts: list[Verdict]


def order_answers(
    text: str,
    notes: Sequence[Note],
    speakers: Collection[str] = (),
    replaced: Mapping[int, int] | None = None,
    outvoted: Collection[int] = (),
) -> AnswerOrder | None:
    """Move the notes that answer a question to the front; None if no note answers.

    ``speakers`` are the speakers of the scope. ``replaced`` maps the place of a note to that of its replacement. The
    replacement of an answer is an answer. ``outvoted`` are the places of notes that more sources contradict: they rank
    after other answers. Facts rank before turns. In a chat with an assistant, the first note only gives way if it
    certainly does not answer.
    """
    question = parse_state_question(text)
    if question is None or len(notes) < 2:
        return None
    replaced = replaced or {}
    is_chat = any(note.role is not None for note in notes)  # else "I" is one of several people
    own = parse_own_question(text, question.value, _ANSWER_KIND_TOKENS) if is_chat else None
    if own is None:
        judgements = [
            Judgement(Verdict.UNSURE) if note.role == "assistant" else judge_note(question, note, speakers)
            for note in notes
        ]
    else:
        judgements = [Judgement(judge(own, note)) for note in notes]
    if is_chat and judgements[0].verdict is Verdict.UNSURE:
        return None
    for old, new in sorted(replaced.items(), key=lambda pair: notes[pair[0]].seq):
        is_denied = own is not None and judgements[new].verdict is Verdict.REFUTED
        if judgements[old].verdict is Verdict.ANSWERS and not is_denied:
            matched = max(judgements[new].matched, judgements[old].matched)
            judgements[new] = Judgement(Verdict.ANSWERS, matched)
    answers = [judgement for judgement in judgements if judgement.verdict is Verdict.ANSWERS]
    if not answers:
        return None
    most = max(answer.matched for answer in answers)  # "garden gate": the gate of the house is another gate
    weaker = replaced.keys() | set(outvoted)
    facts = {
        place
        for place, judgement in enumerate(judgements)
        if judgement == (Verdict.ANSWERS, most) and notes[place].kind is Kind.SEMANTIC and place not in weaker
    }

    def rank(place: int) -> tuple[int, float, int]:
        valid_from, (verdict, matched) = notes[place].valid_from, judgements[place]
        if verdict is not Verdict.ANSWERS:
            return 2, 0.0, place
        if matched < most or place in weaker or (facts and place not in facts):
            return 1, 0.0, place
        return 0, -valid_from.timestamp() if valid_from else 0.0, place

    return AnswerOrder(sorted(range(len(notes)), key=rank), [judgement.verdict for judgement in judgements])
