"""LoCoMo's JSON: one conversation or a list of them, in dated sessions of turns.

Every turn has its session's time in UTC, because the file has no other times. The session is ``session_3``, the id is
the turn's own (``D3:7``). If there are several conversations, or in a walked folder or zip, both begin with the
conversation's name (``conv-1/session_3``, ``conv-1/D3:7``), and the metadata contains it as ``conversation``. The
caption of a shared picture follows the text; other fields of the picture are the payload.

Paper: Maharana et al. 2024, "Evaluating Very Long-Term Conversational Memory of LLM Agents".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord
from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.diagnosis import SHOWN_KEYS, is_cut
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.records import record, rejected

name = "locomo"

DATE_FORMAT = "%I:%M %p on %d %B, %Y"
"""The format of ``7:05 pm on 3 March, 2024``."""

CONVERSATION = "conversation"
"""The metadata key of a conversation's name, if a file contains several."""

_MARKS = ({"speaker_a"}, {"dia_id"}, {"session_1"}, {"sample_id", "conversation"}, {"qa", "evidence"})
_SESSION = re.compile(r"session_(\d+)")
_TURN_FIELDS = {"speaker", "dia_id", "text"}
_PHOTO = "a photo of "


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with LoCoMo's keys, also with a long list of questions and evidence first."""
    keys = keys_in(head)
    return any(marks <= keys for marks in _MARKS)


def read(path: Path, place: str | None = None) -> Iterator[Record]:
    """Yield the turns of all conversations in order; the whole file is in memory. Raises ``BadRecord`` as ``load``.

    ``place`` is the path in a walked folder, where other files may have turns with the same ids.
    """
    samples = load(path)
    if len(samples) == 1:
        names = [place]
    else:
        names = [f"{nth}" if place is None else f"{place}/{nth}" for nth in range(len(samples))]
    for name, sample in zip(names, samples, strict=True):
        yield from turns(path, sample, None if name is None else str(sample.get("sample_id", name)))


def load(path: Path) -> list[dict[str, Any]]:
    """Return the conversations of a file. Raises ``BadRecord`` with the place of the first error."""
    try:
        samples = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        if is_cut(error):
            raise BadRecord(f"{where}: the JSON is truncated here: copy or export the file again") from None
        raise BadRecord(f"{where}: the JSON is damaged here ({error.msg.removesuffix(' at')})") from None
    except UnicodeDecodeError as error:
        raise BadRecord(f"{path}: byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise BadRecord(f"{path}: the JSON is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise BadRecord(f"{path}: the JSON cannot be read: {error}") from None
    if isinstance(samples, dict):
        samples = [samples]
    if not isinstance(samples, list):
        raise BadRecord(f"{path}: expected a conversation or a list of them")
    for place, sample in enumerate(samples):
        if not isinstance(sample, dict) or not isinstance(sample.get("conversation", sample), dict):
            raise BadRecord(f"{path}: entry {place} is not a conversation")
        if "conversation" not in sample and not any(map(_SESSION.fullmatch, sample)):
            keys_found = ", ".join(list(sample)[:SHOWN_KEYS]) or "nothing"
            raise BadRecord(
                f"{path}: entry {place} is not a conversation: it has {keys_found}, and LoCoMo's have session_1, "
                "session_1_date_time and so on"
            )
    return samples


def turns(path: Path, sample: dict[str, Any], conversation: str | None) -> Iterator[Record]:
    """Yield the turns of one conversation; ``conversation`` is its name if the file contains several."""
    sessions = sample.get("conversation", sample)
    prefix = f"{conversation}/" if conversation else ""
    metadata = {CONVERSATION: conversation} if conversation else {}
    numbers = sorted(int(match.group(1)) for key in sessions if (match := _SESSION.fullmatch(key)))
    for number in numbers:
        session = f"session_{number}"
        where = Source(file=str(path), position=f"{prefix}{session}")
        turns, raw_date = sessions[session], sessions.get(f"{session}_date_time")
        if not isinstance(turns, list):
            yield rejected(where, "expected a list of turns")
            continue
        occurred_at = _moment(raw_date)
        if raw_date is not None and occurred_at is None and turns:
            yield rejected(where, f"{raw_date!r} is not a date such as 7:05 pm on 3 March, 2024; its turns are undated")
        for nth, turn in enumerate(turns, start=1):
            source = Source(file=str(path), position=f"{prefix}{session}[{nth}]")
            if not isinstance(turn, dict):
                yield rejected(source, "expected a turn with speaker and text")
                continue
            fields = {
                "content": _content(turn),
                "id": f"{prefix}{turn.get('dia_id') or f'D{number}:{nth}'}",
                "speaker": turn.get("speaker"),
                "occurred_at": occurred_at,
                "session": f"{prefix}{session}",
                "payload": {key: value for key, value in turn.items() if key not in _TURN_FIELDS} or None,
                "metadata": metadata,
            }
            yield record(fields, source)


def _content(turn: dict[str, Any]) -> Any:
    """Return the text with a shared picture's caption, or an invalid text unchanged, for validation."""
    text, caption = turn.get("text", ""), turn.get("blip_caption")
    if not isinstance(text, str) or not isinstance(caption, str) or not caption.strip():
        return text
    picture = caption if caption.startswith(_PHOTO) else f"a photo: {caption}"
    return f"{text} [shares {picture}]".strip()


def _moment(raw_date: Any) -> datetime | None:
    try:
        return datetime.strptime(raw_date, DATE_FORMAT)
    except (TypeError, ValueError):
        return None
