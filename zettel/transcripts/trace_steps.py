"""Steps of an agent's trace, whoever recorded it, and what of their messages is new.

A model is given the whole conversation each time, so most of what a trace holds is there many times. Steps are taken
in the order in which they began (exports often have the latest first), and of each only those messages are told
that its conversation has not heard yet.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import Enum
from typing import IO, Any, NamedTuple

from zettel.errors import BadRecord
from zettel.model import Source

from . import Record, Rejected
from .chat_messages import told_in
from .content_blocks import parsed
from .moments import iso_time
from .records import ContentKeys, record

_IN_MEMORY = 1 << 20  # bytes of steps that wait for their turn before a temporary file takes them


class StepKind(str, Enum):
    """What a step is a call of."""

    MODEL = "model"
    TOOL = "tool"
    WHOLE = "whole"
    """An agent or a chain; it is told by its own messages only if no model or tool in its trace is."""


class Step(NamedTuple):
    """A run or span; messages are unwrapped ones (see ``chat_messages``). ``order`` grows with time."""

    kind: StepKind
    id: str
    parent: str | None
    trace: str
    session: str
    order: float
    began: datetime | None
    ended: datetime | None
    model: str | None
    given: list[dict[str, Any]]
    said: list[dict[str, Any]]
    source: Source


def told(steps: Iterable[Step | Rejected]) -> Iterator[Record]:
    """The events of all steps in order, after what could not be a step. Raises what ``steps`` raises, at the end."""
    index: list[tuple[float, int]] = []
    models: set[str] = set()
    traces: set[str] = set()
    broken: BadRecord | None = None
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as waiting:
        try:
            for step in steps:
                if isinstance(step, Rejected):
                    yield step
                    continue
                if step.kind is StepKind.MODEL:
                    models.add(step.id)
                if step.kind is not StepKind.WHOLE:
                    traces.add(step.trace)
                index.append((step.order, waiting.tell()))
                waiting.write(_packed(step))
        except BadRecord as error:  # what was read until here is told nevertheless
            broken = error
        yield from _in_order(waiting, sorted(index), models, traces)
    if broken is not None:
        raise broken


def _in_order(
    waiting: IO[bytes], index: list[tuple[float, int]], models: set[str], traces: set[str]
) -> Iterator[Record]:
    keys = ContentKeys()
    heard: dict[str, Counter[str]] = {}
    for _, offset in index:
        waiting.seek(offset)
        step = _unpacked(waiting.readline())
        inside = step.kind is StepKind.MODEL and step.parent in models  # a model's call as its library saw it
        if not inside and not (step.kind is StepKind.WHOLE and step.trace in traces):
            yield from _news(step, heard.setdefault(step.session, Counter()), keys)


def _news(step: Step, heard: Counter[str], keys: ContentKeys) -> Iterator[Record]:
    """What a step adds to its conversation: more of the same than was heard, and always its own single answer."""
    counted: Counter[str] = Counter()
    parts = [(step.began, message, False) for message in step.given]
    parts += [(step.ended or step.began, message, len(step.said) == 1) for message in step.said]
    if len(step.said) > 1:  # the conversation as it was then, what was given included
        parts = parts[len(step.given) :]
    for when, message, is_new in parts:
        for fields in told_in(message):
            said, calls = _said(fields), [f"a call of {call['tool']}" for call in _calls(fields)]
            if step.kind is StepKind.TOOL and calls and heard[calls[0]]:
                heard[calls[0]] -= 1  # the model that asked for it told it
                continue
            counted[said] = max(counted[said], heard[said] if is_new else 0) + 1
            if counted[said] <= heard[said]:
                continue
            heard[said] = counted[said]
            if step.kind is not StepKind.TOOL:
                heard.update(calls)
            told = {"trace": step.trace, "model": step.model if fields["role"] == "assistant" else None}
            known = {key: value for key, value in told.items() if value is not None and value != step.session}
            event = {
                **fields,
                "id": keys.key(step.session, fields["role"], said),
                "session": step.session,
                "occurred_at": when,
                "metadata": {**known, **fields["metadata"]},
            }
            yield record(event, step.source)


def _said(fields: dict[str, Any]) -> str:
    """What tells one message of a conversation from another, in whichever of the two places it is met."""
    if fields["role"] == "tool":
        return json.dumps(["tool", parsed(fields["content"]) or fields["payload"]], sort_keys=True)
    calls = [[call["tool"], call["input"]] for call in _calls(fields)]
    return json.dumps([fields["role"], fields["content"], calls], sort_keys=True)


def _calls(fields: dict[str, Any]) -> list[dict[str, Any]]:
    return fields["payload"]["calls"] if fields["role"] != "tool" and fields["payload"] else []


def _packed(step: Step) -> bytes:
    times = {"began": step.began and step.began.isoformat(), "ended": step.ended and step.ended.isoformat()}
    return json.dumps({**step._asdict(), **times, "source": [step.source.file, step.source.position]}).encode() + b"\n"


def _unpacked(line: bytes) -> Step:
    told = json.loads(line)
    file, position = told["source"]
    return Step(
        **{
            **told,
            "kind": StepKind(told["kind"]),
            "began": iso_time(told["began"]),
            "ended": iso_time(told["ended"]),
            "source": Source(file=file, position=position),
        }
    )
