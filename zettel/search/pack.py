"""Packs hits into a token budget as text for a prompt, in order of time, with dates and speakers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from zettel.llm.prompt_lines import clip
from zettel.text.tokens import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.model import Hit, Note

CHARACTERS_PER_TOKEN = 4
"""Characters per token of common tokenizers for English. Other languages have slightly fewer."""
OPENING_SHARE = 1 / 3
"""Largest share of the tokens for the opening."""
BEST_SHARE = 2 / 3
"""Largest share of the tokens for a best hit that is too long. The other hits may be nearly as good."""
SPEAKER_CHARS = 60
"""Longest speaker in the text. Longer strings are not names."""
CUT = "…"

_UNSPACED_SIGN = re.compile(f"[{UNSPACED}]")


def estimate_tokens(text: str) -> int:
    """Approximate number of tokens: 1 per 4 characters, 1 per character of a script without spaces."""
    unspaced = len(_UNSPACED_SIGN.findall(text))
    return math.ceil((len(text) - unspaced) / CHARACTERS_PER_TOKEN) + unspaced


def pack(hits: Sequence[Hit], max_tokens: int, opening: str = "") -> str:
    """The ``hits`` (best first) that fit into ``max_tokens``, under a heading for each day and session.

    Skips hits that do not fit, but shortens the best hit. The first lines of ``opening`` that fit its share come first.
    """
    if opening and (head := _first_lines(opening, int(OPENING_SHARE * max_tokens))):
        rest = pack(hits, max(max_tokens - estimate_tokens(f"{head}\n\n"), 0))
        return f"{head}\n\n{rest}" if rest else head
    chosen = list(hits)
    if len(chosen) > 1 and estimate_tokens(_render([_entry(chosen[0])])) > max_tokens:
        chosen[:1] = _shortened(chosen[0], int(BEST_SHARE * max_tokens))
    entries: list[_Entry] = []
    for entry in map(_entry, chosen):
        if estimate_tokens(_render([*entries, entry])) <= max_tokens:
            entries.append(entry)
    if not entries and hits:
        return _cut(_render([_entry(hits[0])]), max_tokens)
    return _render(entries)


def _shortened(hit: Hit, max_tokens: int) -> list[Hit]:
    """The hit with as much of its content as fits with heading, time and speaker; empty if nothing fits."""
    frame = estimate_tokens(_render([_entry(hit)])) - estimate_tokens(hit.note.content)
    content = _cut(hit.note.content, max_tokens - frame)
    return [hit.model_copy(update={"note": hit.note.model_copy(update={"content": content})})] if content else []


def _first_lines(text: str, max_tokens: int) -> str:
    """The first lines of a text that fit, without a heading at the end; "" if none fits."""
    lines: list[str] = []
    for line in text.splitlines():
        if estimate_tokens("\n".join([*lines, line])) > max_tokens:
            break
        lines.append(line)
    while lines and not lines[-1].startswith("- "):
        lines.pop()
    return "\n".join(lines)


class _Entry(NamedTuple):
    place: tuple[bool, float, str, int, int]
    heading: str
    line: str


def _entry(hit: Hit) -> _Entry:
    return _Entry(_place(hit.note), _heading(hit.note), _line(hit.note, hit.why.time if hit.note.valid_to else ""))


def _render(entries: Sequence[_Entry]) -> str:
    lines: list[str] = []
    heading = ""
    for entry in sorted(entries):
        if entry.heading != heading:
            heading = entry.heading
            lines += ["", heading] if lines and heading else [heading]
        lines.append(entry.line)
    return "\n".join(lines)


def _place(note: Note) -> tuple[bool, float, str, int, int]:
    """Sort key: dated notes by time, then the others by session, each in order of arrival."""
    moment = note.occurred_at.timestamp() if note.occurred_at else 0.0
    session = "" if note.occurred_at else note.session or ""
    return note.occurred_at is None, moment, session, note.seq, note.part


def _heading(note: Note) -> str:
    day = note.occurred_at.strftime("%A, ") + note.occurred_at.date().isoformat() if note.occurred_at else ""
    session = f"session {_on_one_line(note.session)}" if note.session else ""
    parts = ", ".join(part for part in (day, session) if part)
    return f"## {parts}" if parts else ""


def _line(note: Note, validity: str) -> str:
    clock = f"{note.occurred_at:%H:%M} " if note.occurred_at and note.session else ""
    speaker = f"{clip(note.speaker, SPEAKER_CHARS)}: " if note.speaker else ""
    title = f"{_on_one_line(note.title)}: " if note.title and not note.content.startswith(note.title) else ""
    ended = f" ({validity})" if validity else ""
    body = note.content.strip().replace("\n", "\n  ")
    return f"- {clock}{speaker}{title}{body}{ended}"


def _on_one_line(text: str) -> str:
    """Remove line breaks, so that the text cannot open a heading."""
    return " ".join(text.split())


def _cut(text: str, max_tokens: int) -> str:
    """The start of ``text`` that fits, cut after a whole word; "" if none fits."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle] + CUT) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    start = text[:low]
    if low < len(text) and not text[low].isspace() and " " in start:
        start = start[: start.rindex(" ")]
    return start.rstrip() + CUT if start.strip() else ""
