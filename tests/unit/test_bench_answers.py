"""Contexts, requests and the parsing of verdicts of ``zettel bench answers``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from zettel.bench.answers.answering import without_long
from zettel.bench.answers.contexts import FULL, packed, rendered
from zettel.bench.answers.datasets import READERS, Asked, Skipped, spread
from zettel.bench.answers.records import AnswerRecord, ContextRecord, Journal, VerdictRecord
from zettel.bench.answers.requests import (
    LABELS,
    MAX_TOKENS,
    SHOWN_LABELS,
    answer_request,
    parsed_answer,
    parsed_verdict,
    request_tokens,
    score_of,
    verdict_requests,
)
from zettel.bench.answers.table import table
from zettel.errors import InvalidModelOutput
from zettel.model import Event
from zettel.ports.language_model import Answer
from zettel.prompts import load_prompt
from zettel.search.pack import estimate_tokens

MAY, JUNE = datetime(2024, 5, 1, 9, 30, tzinfo=timezone.utc), datetime(2024, 6, 2, 18, 0, tzinfo=timezone.utc)
EVENTS = [
    Event(content="The heron came back.", speaker="Ann", occurred_at=MAY),
    Event(content="Which heron?", speaker="Ben", occurred_at=MAY),
    Event(content="I mended the oak boat.", role="user", occurred_at=JUNE),
    Event(content="Basil grows on the sill.", session="kitchen"),
]
CHAT = Path(__file__).parents[1] / "data" / "chats" / "canal-boat.json"
FACT = Asked("q1", "Who came back?", "fact", "the heron", "judge-locomo", 3, JUNE)


def given(text: str, *, cut: bool = False) -> Answer:
    return Answer(text=text, model="openai/scripted", cut=cut)


def test_events_are_listed_by_time_under_their_day() -> None:
    assert rendered([EVENTS[3], EVENTS[2], *EVENTS[:2]]).splitlines() == [
        "## Wednesday, 2024-05-01",
        "- 09:30 Ann: The heron came back.",
        "- 09:30 Ben: Which heron?",
        "",
        "## Sunday, 2024-06-02",
        "- 18:00 user: I mended the oak boat.",
        "",
        "## session kitchen",
        "- Basil grows on the sill.",
    ]
    assert rendered([]) == ""


@pytest.mark.parametrize("max_tokens", [1, 5, 17, 24, 40, 1000])
def test_a_context_never_exceeds_its_tokens(max_tokens: int) -> None:
    assert estimate_tokens(packed(EVENTS, [2, 1, 0, 3], max_tokens)) <= max_tokens


def test_the_best_events_that_fit_are_packed_in_the_order_of_the_conversation() -> None:
    tokens = estimate_tokens(rendered([EVENTS[0], EVENTS[1]]))
    assert packed(EVENTS, [1, 2, 0], tokens) == rendered(EVENTS[:2]), "the second does not fit, the third does"
    long = [Event(content="heron " * 500)]
    assert packed(long, [0], 50).startswith("## session None\n- heron heron")
    assert packed(EVENTS, [], 50) == ""


def test_requests_carry_the_question_its_day_and_the_criteria() -> None:
    request = answer_request(FACT, "- Ann: The heron came back.")
    assert request.prompt == load_prompt("answer").name
    assert request.user.endswith('{"question":"Who came back?","today":"2024-06-02 Sun"}')
    (verdict,) = verdict_requests(FACT, "A heron.", "published")
    assert '"reference":"the heron"' in verdict.user
    assert verdict.schema["properties"]["verdict"]["enum"] == ["CORRECT", "WRONG"]
    by_criteria = FACT._replace(judge="judge-beam", criteria=("a", "b"))
    first, second = verdict_requests(by_criteria, "A heron.", "published")
    assert ('"criterion":"a"' in first.user, '"criterion":"b"' in second.user) == (True, True)
    assert "reference" not in first.user
    (strict,) = verdict_requests(by_criteria, "A heron.", "strict")
    assert strict.prompt == "judge-strict/1"
    (facts,) = verdict_requests(FACT._replace(judge="judge-halumem", facts=("It is grey.",)), "A heron.", "published")
    assert '"facts":["It is grey."]' in facts.user
    assert request_tokens(request) > request_tokens(answer_request(FACT, ""))


def test_every_judge_has_its_prompt_and_names_its_labels_in_it() -> None:
    for prompt, labels in LABELS.items():
        _, system, examples = load_prompt(prompt)
        assert all(f'"{label}"' in system for label in labels), prompt
        assert {parsed_verdict(prompt, given(answer))[0] for _, answer in examples} <= labels.keys()
        assert max(labels.values()) == 1.0
        assert min(labels.values()) == 0.0
    for prompt, shown in SHOWN_LABELS.items():
        assert set(shown) < LABELS[prompt].keys()
    assert len(load_prompt("answer").examples) == 2


@pytest.mark.parametrize(
    ("prompt", "text", "label"),
    [
        ("judge-locomo", '{"reason": "x", "verdict": "CORRECT"}', "CORRECT"),
        ("judge-locomo", 'So:\n```json\n{"verdict": "wrong"}\n```', "WRONG"),
        ("judge-longmemeval-fact", "Yes.", "yes"),
        ("judge-beam", '[{"verdict": "partly", "reason": null}]', "partly"),
        ("judge-halumem", '{"reason": "cut in the mid', None),
        ("judge-halumem", '{"verdict": "Other"}', None),
        ("judge-locomo", "CORRECT or WRONG", None),
        ("judge-locomo", "[]", None),
    ],
)
def test_verdicts_are_read_from_json_or_a_bare_label(prompt: str, text: str, label: str | None) -> None:
    if label is None:
        with pytest.raises(InvalidModelOutput):
            parsed_verdict(prompt, given(text))
    else:
        assert parsed_verdict(prompt, given(text))[0] == label


def test_answers_are_read_from_json_or_are_the_words_themselves() -> None:
    assert parsed_answer(given('{"answer": " A heron. "}')) == "A heron."
    assert parsed_answer(given("A heron.")) == "A heron."
    for text, cut in (('{"answer": ""}', False), ('{"answer": "A her', True), ("A long st", True), ("{}", False)):
        with pytest.raises(InvalidModelOutput):
            parsed_answer(given(text, cut=cut))


def test_partial_criteria_count_half() -> None:
    assert score_of("judge-beam", ["met", "partly", "missed", "partly"]) == 0.5


def test_contexts_beyond_the_window_are_left_out() -> None:
    contexts = {
        (id, system): ContextRecord(id=id, system=system, tokens=tokens, seconds=0.1, context_hash="x")
        for id, system, tokens in (("a", "zettel", 1_000), ("a", FULL, 5_000), ("b", "zettel", 1_000), ("b", FULL, 900))
    }
    fitting, (remark,) = without_long(contexts, "openai/x", MAX_TOKENS + 1_200)
    assert list(fitting) == [("a", "zettel"), ("b", "zettel"), ("b", FULL)]
    assert remark.startswith("full: 1 of 2 contexts (up to 5,000 tokens) are left out: openai/x reads")
    unknown, (remark,) = without_long(contexts, "openai/x", None)
    assert [system for _, system in unknown] == ["zettel", "zettel"]
    assert "pass --window TOKENS" in remark


def test_the_table_counts_missing_answers_as_zero_and_leaves_out_missing_verdicts() -> None:
    questions = {id: FACT._replace(id=id, kind=kind) for id, kind in (("a", "fact"), ("b", "fact"), ("c", "time"))}
    answers = {
        (id, system): AnswerRecord(id=id, system=system, answer=answer, tokens=100, seconds=0.5)
        for id, system, answer in (
            ("a", "zettel", "x"), ("b", "zettel", None), ("c", "zettel", "x"), ("a", "other", "x"), ("b", "other", "x"),
        )
    }  # fmt: skip
    verdicts = {
        (id, system): VerdictRecord(id=id, system=system, score=score, labels=["CORRECT"])
        for id, system, score in (("a", "zettel", 1.0), ("c", "zettel", None), ("a", "other", 1.0), ("b", "other", 1.0))
    }
    columns, rows = table(questions, answers, verdicts)
    zettel, other, asked = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (zettel["score"], zettel["fact"], zettel["time"]) == (0.5, 0.5, None)
    assert (zettel["without answer"], zettel["without verdict"]) == (1, 1)
    assert (other["score"], other["p"]) == (1.0, 1.0)
    assert (zettel["tokens"], zettel["p50 ms"], zettel["answer p50 s"]) == (100.0, 500.0, None)
    assert (asked["score"], asked["fact"], asked["time"]) == (3, 2, 1)


def test_a_cut_last_line_is_removed_before_the_next_record(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"id": "a", "system": "zettel", "answer": "x"}\n{"id": "b", "sy')
    journal = Journal(file)
    journal.append(AnswerRecord(id="c", system="zettel", answer=None))
    assert [record.id for record in Journal(file).read(AnswerRecord)] == ["a", "c"]
    assert Journal(file, is_new=True).read(AnswerRecord) == []


def test_questions_are_taken_at_equal_distances() -> None:
    questions: Sequence[Asked] = [FACT._replace(id=str(n)) for n in range(10)]
    assert [each.id for each in spread(questions, 3)] == ["0", "3", "6"]
    assert spread(questions, None) is spread(questions, 99) is questions


def test_our_own_chats_have_reference_answers() -> None:
    skipped: Skipped = Counter()
    (chat,) = READERS["beam"](CHAT, skipped)
    assert len(chat.questions) == 38
    assert skipped.total() == 2, "questions that the chat does not answer"
    assert all(each.judge == "judge-beam" and len(each.criteria) == 1 for each in chat.questions)
