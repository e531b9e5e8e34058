"""Questions with reference answers: LoCoMo, LongMemEval, BEAM and HaluMem, each with its published judge."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from zettel.bench import chats, halumem_users
from zettel.bench.locomo import GROUPS, UNANSWERABLE
from zettel.bench.longmemeval import ABSTENTION
from zettel.bench.longmemeval import FIELDS as LONGMEMEVAL_FIELDS
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import locomo, longmemeval
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict

LONGMEMEVAL_JUDGES = {
    "temporal-reasoning": "judge-longmemeval-temporal",
    "knowledge-update": "judge-longmemeval-update",
    "single-session-preference": "judge-longmemeval-preference",
}
"""LongMemEval's judge per type of question; all other types have the judge of facts."""
_DIGEST_CHARS = 16


class Asked(NamedTuple):
    """A question with its reference answer.

    ``after`` is the number of the conversation's events that precede the question, ``today`` its day if known.
    ``criteria`` are graded one by one, ``facts`` are what the reference rests on; each is empty where the published
    judge has none. ``judge`` is the prompt of the published judge.
    """

    id: str
    text: str
    kind: str
    reference: str
    judge: str
    after: int
    today: datetime | None
    criteria: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


class Conversation(NamedTuple):
    """Events of one scope, with the questions in the order of ``after``."""

    name: str
    events: Sequence[Event]
    questions: Sequence[Asked]


Skipped: TypeAlias = "Counter[str]"
"""The number of questions that are left out, by reason."""


def read(dataset: str, path: Path, skipped: Skipped) -> Iterator[Conversation]:
    """Yield the conversations of a data set, one at a time.

    Raises ``InvalidInput`` for an unknown data set, and ``BadRecord`` for a damaged file.
    """
    if dataset not in READERS:
        raise InvalidInput(f"unknown data set {dataset!r}: use one of {', '.join(READERS)}")
    return READERS[dataset](path, skipped)


def selected(conversations: Iterable[Conversation], ids: frozenset[str] | None) -> Iterator[Conversation]:
    """Yield the conversations that have one of these questions, with these alone; all for None."""
    for conversation in conversations:
        questions = [each for each in conversation.questions if ids is None or each.id in ids]
        if questions:
            yield conversation._replace(questions=questions)


def spread(questions: Sequence[Asked], count: int | None) -> Sequence[Asked]:
    """Return ``count`` questions at equal distances; all for None."""
    if count is None or count >= len(questions):
        return questions
    return [questions[place * len(questions) // count] for place in range(count)]


def digest(questions: Iterable[Asked]) -> str:
    """Return a hash of questions and references."""
    sha = hashlib.sha256()
    for each in questions:
        sha.update(repr((each.id, each.text, each.reference, each.after, each.criteria)).encode("utf-8", "replace"))
    return sha.hexdigest()[:_DIGEST_CHARS]


def _locomo(path: Path, skipped: Skipped) -> Iterator[Conversation]:
    for n, sample in enumerate(locomo.load(path)):
        name = str(sample.get("sample_id", n))
        events = [turn for turn in locomo.turns(path, sample, None) if isinstance(turn, Event)]
        questions = []
        for place, entry in enumerate(sample.get("qa", []), start=1):
            category = str(entry.get("category"))
            if category == UNANSWERABLE:
                skipped["adversarial questions, which the published judge leaves out"] += 1
            elif "answer" not in entry:
                skipped["questions without a reference answer"] += 1
            else:
                fields = f"{name}/{place}", entry["question"], GROUPS.get(category, category), str(entry["answer"])
                questions.append(Asked(*fields, "judge-locomo", len(events), _last_day(events)))
        yield Conversation(name, events, questions)


def _longmemeval(path: Path, skipped: Skipped) -> Iterator[Conversation]:
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            raise BadRecord(f"{path}: {entry.reason}")
        fields = as_dict(entry.value)
        missing = [key for key, kind in LONGMEMEVAL_FIELDS.items() if not isinstance(fields.get(key), kind)]
        missing += ["answer"] if "answer" not in fields else []
        if missing:
            raise BadRecord(f"{path}, question {entry.source.position}: {missing[0]} is missing or has another type")
        id, kind = fields["question_id"], fields["question_type"]
        events = [turn for turn in longmemeval.turns(fields, entry.source) if isinstance(turn, Event)]
        events = [turn.model_copy(update={"metadata": {}}) for turn in events]  # it names the evidence
        judge = LONGMEMEVAL_JUDGES.get(kind, "judge-longmemeval-fact")
        judge = "judge-longmemeval-abstention" if ABSTENTION in id else judge
        today = longmemeval.moment(fields.get("question_date")) or _last_day(events)
        question = Asked(id, fields["question"], kind, str(fields["answer"]), judge, len(events), today)
        yield Conversation(id, events, [question])


def _beam(path: Path, skipped: Skipped) -> Iterator[Conversation]:
    for collection, fields in chats.read_with_fields(path):
        questions = []
        for n, (question, entry) in enumerate(zip(collection.questions, fields, strict=True), start=1):
            criteria = _criteria(entry)
            if not criteria:
                skipped["questions without a rubric or an answer"] += 1
                continue
            questions.append(
                Asked(
                    f"{collection.name}/{n}", question.text, question.group, "\n".join(criteria), "judge-beam",
                    len(collection.events), _last_day(collection.events), criteria,
                )
            )  # fmt: skip
        yield Conversation(collection.name, collection.events, questions)


def _criteria(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the rubric of a question, or else its answer as the only criterion."""
    rubric = entry.get("rubric")
    if isinstance(rubric, list) and rubric:
        return tuple(map(str, rubric))
    return (f"The answer states: {entry['answer']}",) if entry.get("answer") else ()


def _halumem(path: Path, skipped: Skipped) -> Iterator[Conversation]:
    for user in halumem_users.read(path):
        events: list[Event] = []
        questions = []
        for session in user.sessions:
            events += session.events
            for n, asked in enumerate(session.questions, start=1):
                fields = f"{session.id}/q{n}", asked.text, asked.kind, asked.answer
                today = _last_day(events)
                questions.append(Asked(*fields, "judge-halumem", len(events), today, facts=asked.evidence))
        yield Conversation(user.name, events, questions)


def _last_day(events: Sequence[Event]) -> datetime | None:
    dated = (event.occurred_at for event in reversed(events) if event.occurred_at is not None)
    return next(dated, None)


READERS: dict[str, Callable[[Path, Skipped], Iterator[Conversation]]] = {
    "locomo": _locomo,
    "longmemeval": _longmemeval,
    "beam": _beam,
    "halumem": _halumem,
}
"""The reader of each data set."""
