"""Requests for answers and verdicts, and the parsing of both.

The wording of the prompts is zettel's; the criteria are those of the published judges: of mem0's evaluation of LoCoMo,
and of the authors of LongMemEval, BEAM and HaluMem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

from zettel.errors import InvalidModelOutput
from zettel.llm.answer_parsing import items
from zettel.llm.prompt_lines import about_tokens, day, line
from zettel.llm.schemas import TEXT, enum_schema, object_schema
from zettel.ports.language_model import Answer, Request
from zettel.prompts import load_prompt

from .datasets import Asked

ANSWER_PROMPT, STRICT_PROMPT = "answer", "judge-strict"

JudgeKind: TypeAlias = Literal["published", "strict"]
"""The judge of the data set's authors, or one strict judge for all data sets."""
MAX_TOKENS = 2_000
"""Limit of an answer and of a verdict; models that reason need more tokens than their answer has."""
EXPECTED_ANSWER, EXPECTED_VERDICT = 80, 60
"""Tokens of an answer and of a verdict, for the estimate: two sentences and one, with their JSON."""

_CORRECT = {"CORRECT": 1.0, "WRONG": 0.0}
_YES = {"yes": 1.0, "no": 0.0}
LABELS: Mapping[str, Mapping[str, float]] = {
    "judge-locomo": _CORRECT,
    "judge-longmemeval-fact": _YES,
    "judge-longmemeval-temporal": _YES,
    "judge-longmemeval-update": _YES,
    "judge-longmemeval-preference": _YES,
    "judge-longmemeval-abstention": _YES,
    "judge-beam": {"met": 1.0, "partly": 0.5, "missed": 0.0},
    "judge-halumem": {"Correct": 1.0, "Hallucination": 0.0, "Omission": 0.0},
    STRICT_PROMPT: _CORRECT,
}
"""The score of each label of a judge."""
SHOWN_LABELS: Mapping[str, Sequence[str]] = {"judge-halumem": ("Hallucination", "Omission")}
"""Labels whose share the authors also report."""


def judge_prompt(asked: Asked, judge: JudgeKind) -> str:
    """Return the name of the prompt that grades a question."""
    return STRICT_PROMPT if judge == "strict" else asked.judge


def version_of(prompt: str) -> str:
    """Return the name of a prompt with its version."""
    return load_prompt(prompt).name


def answer_request(asked: Asked, context: str) -> Request:
    """Return the request for an answer from a context."""
    question = line(question=asked.text, today=day(asked.today))
    user = f"memories:\n{context}\nend of memories\nquestion:\n{question}"
    return _request(ANSWER_PROMPT, user, object_schema({"answer": TEXT}))


def verdict_requests(asked: Asked, answer: str, judge: JudgeKind) -> list[Request]:
    """Return the requests that grade an answer: one for each criterion, else one."""
    prompt = judge_prompt(asked, judge)
    schema = object_schema({"reason": TEXT, "verdict": enum_schema(list(LABELS[prompt]))})
    today = day(asked.today)
    if asked.criteria and prompt != STRICT_PROMPT:
        cards = [
            line(question=asked.text, today=today, criterion=criterion, answer=answer) for criterion in asked.criteria
        ]
    else:
        facts = asked.facts if prompt != STRICT_PROMPT else ()
        cards = [line(question=asked.text, today=today, reference=asked.reference, facts=facts, answer=answer)]
    return [_request(prompt, f"grade:\n{card}", schema) for card in cards]


def _request(prompt: str, user: str, schema: Mapping[str, Any]) -> Request:
    return Request(*load_prompt(prompt), user=user, schema=schema, max_tokens=MAX_TOKENS)


def request_tokens(request: Request) -> int:
    """Return about how many tokens a request has."""
    return _constant_tokens(request.prompt.partition("/")[0]) + about_tokens(request.user)


@cache
def _constant_tokens(prompt: str) -> int:
    _, system, examples = load_prompt(prompt)
    return about_tokens("".join([system, *(part for example in examples for part in example)]))


def parsed_answer(answer: Answer) -> str:
    """Return the text of an answer; words without JSON are the answer themselves. Raises ``InvalidModelOutput``."""
    try:
        item = next(iter(items(answer.text, answer.cut)), None)
    except InvalidModelOutput:
        if answer.cut or "{" in answer.text:
            raise
        item = {"answer": answer.text}
    text = item.get("answer") if isinstance(item, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise InvalidModelOutput("the answer of the model is empty")
    return text.strip()


def parsed_verdict(prompt: str, answer: Answer) -> tuple[str, str]:
    """Return the label and the reason of a verdict; a label alone is enough. Raises ``InvalidModelOutput``."""
    labels = {label.casefold(): label for label in LABELS[prompt]}
    if (bare := answer.text.strip().strip(".").casefold()) in labels:
        return labels[bare], ""
    item = next(iter(items(answer.text, answer.cut)), None)
    verdict = item.get("verdict") if isinstance(item, dict) else None
    label = labels.get(str(verdict).strip().casefold())
    if label is None:
        raise InvalidModelOutput(f"the verdict is not one of {', '.join(labels.values())}")
    assert isinstance(item, dict)
    reason = item.get("reason")
    return label, reason if isinstance(reason, str) else ""


def score_of(prompt: str, labels: Sequence[str]) -> float:
    """Return the mean score of the labels of one answer."""
    return sum(LABELS[prompt][label] for label in labels) / len(labels)
