"""LongMemEval's JSON: questions, each with a haystack of dated sessions between a user and an assistant.

Every question is a conversation of its own, called by its id (``--conversation``), because haystacks share
sessions. An event's session is ``question/session``, its id ``question/session/turn``. The metadata has what a
benchmark needs: ``conversation`` (the question's id), ``session_id``, and where it holds ``answer_session`` (the
session is one of the question's evidence) and ``has_answer`` (so is the turn). All turns of a session carry its
time, which has no zone.

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

from . import Record, Rejected
from .content_blocks import as_list
from .json_keys import keys_in
from .json_records import json_records
from .locomo import CONVERSATION
from .records import inside, record, rejected

name = "longmemeval"

local_times = True
"""Times have no zone; whoever reads may name one."""

_MARKS = {"haystack_sessions", "haystack_dates", "haystack_session_ids"}
# As in "2023/05/20 (Sat) 02:21".
_DATE = re.compile(r"(\d{4})/(\d\d?)/(\d\d?)(?: *\(\w+\))?(?: +(\d\d?):(\d\d))?")


def sniff(path: Path, head: bytes) -> bool:
    """JSON with LongMemEval's own names."""
    return not _MARKS.isdisjoint(keys_in(head))


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The turns of all haystacks; one haystack at a time is in memory. Raises ``BadRecord``."""
    for one in json_records(path):
        if isinstance(one, Rejected):
            yield one
        elif not isinstance(one.value, dict) or not isinstance(one.value.get("haystack_sessions"), list):
            yield rejected(one.source, "no question of LongMemEval: it has no haystack_sessions")
        else:
            yield from _haystack(one.value, one.source, zone)


def _haystack(question: dict[str, Any], source: Source, zone: tzinfo) -> Iterator[Record]:
    name = str(question.get("question_id") or source.position)
    ids, dates = as_list(question.get("haystack_session_ids")), as_list(question.get("haystack_dates"))
    answers = [id for id in as_list(question.get("answer_session_ids")) if isinstance(id, str)]
    times: Counter[str] = Counter()
    for place, turns in enumerate(question["haystack_sessions"]):
        id = str(ids[place]) if place < len(ids) else f"session_{place + 1}"
        times[id] += 1
        session = f"{name}/{id}" + (f"#{times[id]}" if times[id] > 1 else "")
        where = inside(source, session)
        if not isinstance(turns, list):
            yield rejected(where, "expected a list of turns")
            continue
        told = dates[place] if place < len(dates) else None
        occurred_at = _moment(told, zone)
        if told is not None and occurred_at is None:
            yield rejected(where, f"no date like '2023/05/20 (Sat) 02:21': {str(told)[:40]!r}; its turns are undated")
        metadata = {CONVERSATION: name, "session_id": id} | ({"answer_session": True} if id in answers else {})
        for nth, turn in enumerate(turns, start=1):
            here = inside(source, f"{session}/{nth}")
            if not isinstance(turn, dict):
                yield rejected(here, "expected a turn with role and content")
                continue
            fields = {
                "id": f"{session}/{nth}",
                "content": turn.get("content"),
                "role": turn.get("role"),
                "session": session,
                "occurred_at": occurred_at,
                "metadata": metadata | ({"has_answer": True} if turn.get("has_answer") is True else {}),
            }
            yield record(fields, here)


def _moment(told: Any, zone: tzinfo) -> datetime | None:
    found = _DATE.fullmatch(told.strip()) if isinstance(told, str) else None
    if found is None:
        return None
    year, month, day, hour, minute = (int(part or 0) for part in found.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=zone)
    except ValueError:
        return None
