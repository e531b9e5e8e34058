"""Steps of an agent's trace, and the new messages of each step.

Each model call receives the whole conversation, so a trace repeats most messages. Steps are sorted by start time
(exports often begin with the latest), and each step yields only messages that its conversation does not have yet.
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
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.chat_messages import message_events
from zettel.transcripts.parsing.content_blocks import parsed
from zettel.transcripts.parsing.timestamps import iso_time
from zettel.transcripts.records import ContentKeys, record

_IN_MEMORY = 1 << 20  # bytes of steps above which a temporary file is on disk


class StepKind(str, Enum):
    """The subject of a step."""

    MODEL = "model"
    TOOL = "tool"
    WHOLE = "whole"
    """An agent or a chain; its own messages count only if its trace has no model or tool step."""


class TraceStep(NamedTuple):
    """A run or span with unwrapped messages (see ``chat_messages``). ``failed``: None if the trace does not report it.
    """

    kind: StepKind
    id: str
    parent: str | None
    trace: str
    session: str
    began: datetime | None
    ended: datetime | None
    model: str | None
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    source: Source
    failed: bool | None = None


def events_in_steps(steps: Iterable[TraceStep | Rejected]) -> Iterator[Record]:
    """Yield rejected steps, then the events of all steps by time. Raises errors of ``steps`` at the end."""
    index: list[tuple[float, int]] = []
    models: set[str] = set()
    traces: set[str] = set()
    damage: BadRecord | None = None
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        try:
            for step in steps:
                if isinstance(step, Rejected):
                    yield step
                    continue
                if step.kind is StepKind.MODEL:
                    models.add(step.id)
                if step.kind is not StepKind.WHOLE:
                    traces.add(step.trace)
                index.append((step.began.timestamp() if step.began else 0.0, spool.tell()))
                spool.write(_packed(step))
        except BadRecord as error:  # the steps before it are valid
            damage = error
        yield from _by_time(spool, sorted(index), models, traces)
    if damage is not None:
        raise damage


def _by_time(spool: IO[bytes], index: list[tuple[float, int]], models: set[str], traces: set[str]) -> Iterator[Record]:
    keys = ContentKeys()
    seen: dict[str, Counter[str]] = {}
    for _, offset in index:
        spool.seek(offset)
        step = _unpacked(spool.readline())
        is_inner = step.kind is StepKind.MODEL and step.parent in models  # the same call, recorded by a library
        if not is_inner and not (step.kind is StepKind.WHOLE and step.trace in traces):
            yield from _new_events(step, seen.setdefault(step.session, Counter()), keys)


def _new_events(step: TraceStep, seen: Counter[str], keys: ContentKeys) -> Iterator[Record]:
    """Yield the messages that a conversation has not ``seen`` as often; a single output is always new."""
    counts: Counter[str] = Counter()
    parts = [(step.began, message, False) for message in step.inputs]
    parts += [(step.ended or step.began, message, len(step.outputs) == 1) for message in step.outputs]
    if len(step.outputs) > 1:  # the whole conversation, including the inputs
        parts = parts[len(step.inputs) :]
    for at, message, is_new in parts:
        for fields in message_events(message):
            key, calls = _message_key(fields), [f"a call of {call['tool']}" for call in _calls(fields)]
            if step.kind is StepKind.TOOL and calls and seen[calls[0]]:
                seen[calls[0]] -= 1  # the model's message contains this call
                continue
            counts[key] = max(counts[key], seen[key] if is_new else 0) + 1
            if counts[key] <= seen[key]:
                continue
            seen[key] = counts[key]
            if step.kind is not StepKind.TOOL:
                seen.update(calls)
            origin = {"trace": step.trace, "model": step.model if fields["role"] == "assistant" else None}
            if step.kind is StepKind.TOOL and fields["role"] == "tool" and step.failed is not None:
                origin["outcome"] = "failure" if step.failed else "success"
            metadata = {name: value for name, value in origin.items() if value not in (None, step.session)}
            event = {
                **fields,
                "id": keys.key(step.session, fields["speaker"], key),
                "session": step.session,
                "occurred_at": at,
                "metadata": {**metadata, **fields["metadata"]},
            }
            yield record(event, step.source)


def _message_key(fields: dict[str, Any]) -> str:
    """Return a key that is equal for the same message as an input and as an output."""
    if fields["role"] == "tool":
        return json.dumps(["tool", parsed(fields["content"]) or fields["payload"]], sort_keys=True)
    calls = [[call["tool"], call["input"]] for call in _calls(fields)]
    return json.dumps([fields["speaker"], fields["content"], calls], sort_keys=True)


def _calls(fields: dict[str, Any]) -> list[dict[str, Any]]:
    return fields["payload"]["calls"] if fields["role"] != "tool" and fields["payload"] else []


def _packed(step: TraceStep) -> bytes:
    times = {"began": step.began and step.began.isoformat(), "ended": step.ended and step.ended.isoformat()}
    return json.dumps({**step._asdict(), **times, "source": [step.source.file, step.source.position]}).encode() + b"\n"


def _unpacked(line: bytes) -> TraceStep:
    step = TraceStep(**json.loads(line))
    file, position = step.source
    return step._replace(
        kind=StepKind(step.kind),
        began=iso_time(step.began),
        ended=iso_time(step.ended),
        source=Source(file=str(file), position=str(position)),
    )
