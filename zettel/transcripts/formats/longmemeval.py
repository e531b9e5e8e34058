"""LongMemEval's JSON: questions, each with a haystack of dated sessions between a user and an assistant.

Every question is a conversation named by its id (``--conversation``), because haystacks share sessions. An event's
session is ``question/session``, its id ``question/session/turn``. The metadata contains ``conversation`` (the
question's id), ``session_id``, and for evidence ``answer_session`` and ``has_answer`` (of session and turn). All turns
of a session have its time, without a zone.

Paper: Wu et al. 2024, "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.model import Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict, as_list, present
from zettel.transcripts.records import at_position, record, rejected

from .locomo import CONVERSATION

name = "longmemeval"

local_times = True
"""Times have no zone."""

_MARKS = {"haystack_sessions", "haystack_dates", "haystack_session_ids"}
# As in "2023/05/20 (Sat) 02:21".
_DATE = re.compile(r"(\d{4})/(\d\d?)/(\d\d?)(?: *\(\w+\))?(?: +(\d\d?):(\d\d))?")


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with LongMemEval's keys."""
    return not _MARKS.isdisjoint(keys_in(head))


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the turns of all haystacks; one haystack at a time is in memory. Raises ``BadRecord``."""
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            yield entry
        elif not isinstance(as_dict(entry.value).get("haystack_sessions"), list):
            yield rejected(entry.source, "expected a question of LongMemEval with haystack_sessions")
        else:
            yield from turns(entry.value, entry.source, zone)


def turns(question: dict[str, Any], source: Source, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the turns of one question's haystack, a list of sessions."""
    question_id = str(question.get("question_id") or source.position)
    ids, dates = as_list(question.get("haystack_session_ids")), as_list(question.get("haystack_dates"))
    answers = [id for id in as_list(question.get("answer_session_ids")) if isinstance(id, str)]
    times: Counter[str] = Counter()
    for place, session_turns in enumerate(question["haystack_sessions"]):
        id = str(ids[place]) if place < len(ids) else f"session_{place + 1}"
        times[id] += 1
        session = f"{question_id}/{id}" + (f"#{times[id]}" if times[id] > 1 else "")
        where = at_position(source, session)
        if not isinstance(session_turns, list):
            yield rejected(where, "expected a list of turns")
            continue
        raw_date = dates[place] if place < len(dates) else None
        occurred_at = moment(raw_date, zone)
        if raw_date is not None and occurred_at is None:
            reason = f"{str(raw_date)[:40]!r} is not a date such as 2023/05/20 (Sat) 02:21; its turns are undated"
            yield rejected(where, reason)
        metadata = {CONVERSATION: question_id, "session_id": id, **present({"answer_session": id in answers})}
        for nth, turn in enumerate(session_turns, start=1):
            here = at_position(source, f"{session}/{nth}")
            if not isinstance(turn, dict):
                yield rejected(here, "expected a turn with role and content")
                continue
            fields = {
                "id": f"{session}/{nth}",
                "content": turn.get("content"),
                "speaker": turn.get("role"),
                "session": session,
                "occurred_at": occurred_at,
                "metadata": metadata | present({"has_answer": turn.get("has_answer") is True}),
            }
            yield record(fields, here)


def moment(raw_date: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """Return the time of a text such as ``2023/05/20 (Sat) 02:21``; None for another text."""
    match = _DATE.fullmatch(raw_date.strip()) if isinstance(raw_date, str) else None
    if match is None:
        return None
    year, month, day, hour, minute = (int(part or 0) for part in match.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=zone)
    except ValueError:
        return None
