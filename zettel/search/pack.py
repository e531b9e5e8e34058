"""Hits as text for a prompt: what fits the budget, in the order of time, with dates and speakers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from zettel.annotate.tokens import UNSPACED
from zettel.llm.lines import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.model import Hit, Note

CHARACTERS_PER_TOKEN = 4
"""Of text in alphabets: what the common tokenizers make of English; of other languages they make a little more."""
OPENING_SHARE = 1 / 3
"""Of the tokens, at most, for what a context opens with: most of them are for what was asked."""
BEST_SHARE = 2 / 3
"""Of the tokens, at most, for a best hit that is too long for them: the others may be nearly as good."""
SPEAKER_CHARS = 60
"""Characters of who speaks that are shown: no name is longer, and what is may be anything but one."""
CUT = "…"

_UNSPACED_SIGN = re.compile(f"[{UNSPACED}]")


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model reads: one for 4 characters, one for each of a script without spaces."""
    unspaced = len(_UNSPACED_SIGN.findall(text))
    return math.ceil((len(text) - unspaced) / CHARACTERS_PER_TOKEN) + unspaced


def pack(hits: Sequence[Hit], max_tokens: int, opening: str = "") -> str:
    """As many of ``hits`` (best first) as fit ``max_tokens``, under a heading for each day and session.

    A hit that does not fit is passed over for the next that does; the best one is cut short, and leaves the others some
    room. As many whole lines of an ``opening`` as fit its share of the tokens come first.
    """
    if opening and (head := _opened(opening, int(OPENING_SHARE * max_tokens))):
        rest = pack(hits, max(max_tokens - estimate_tokens(f"{head}\n\n"), 0))
        return f"{head}\n\n{rest}" if rest else head
    chosen = list(hits)
    if len(chosen) > 1 and estimate_tokens(_render([_entry(chosen[0])])) > max_tokens:
        chosen[:1] = _shortened(chosen[0], int(BEST_SHARE * max_tokens))
    taken: list[_Entry] = []
    for entry in map(_entry, chosen):
        if estimate_tokens(_render([*taken, entry])) <= max_tokens:
            taken.append(entry)
    if not taken and hits:
        return _cut(_render([_entry(hits[0])]), max_tokens)
    return _render(taken)


def _shortened(hit: Hit, max_tokens: int) -> list[Hit]:
    """The hit with the beginning of its content, so that it fits with its heading, time and speaker; or nothing."""
    frame = estimate_tokens(_render([_entry(hit)])) - estimate_tokens(hit.note.content)
    content = _cut(hit.note.content, max_tokens - frame)
    return [hit.model_copy(update={"note": hit.note.model_copy(update={"content": content})})] if content else []


def _opened(text: str, max_tokens: int) -> str:
    """The first lines of a text that fit, a heading not without one of its own; "" if there are none."""
    kept: list[str] = []
    for line in text.splitlines():
        if estimate_tokens("\n".join([*kept, line])) > max_tokens:
            break
        kept.append(line)
    while kept and not kept[-1].startswith("- "):
        kept.pop()
    return "\n".join(kept)


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
            due = entry.heading
            lines += ["", due] if lines and due else [due] if due else [""]
            heading = due
        lines.append(entry.line)
    return "\n".join(lines)


def _place(note: Note) -> tuple[bool, float, str, int, int]:
    """Dated ones in the order of time, then the others by session, each in the order they came."""
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
    speaker = f"{clip(note.role, SPEAKER_CHARS)}: " if note.role else ""
    title = f"{_on_one_line(note.title)}: " if note.title and not note.content.startswith(note.title) else ""
    ended = f" ({validity})" if validity else ""
    body = note.content.strip().replace("\n", "\n  ")
    return f"- {clock}{speaker}{title}{body}{ended}"


def _on_one_line(text: str) -> str:
    """So that it cannot open a heading of its own."""
    return " ".join(text.split())


def _cut(text: str, max_tokens: int) -> str:
    """The beginning of ``text`` that fits, up to a whole word; nothing if not even one does."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle] + CUT) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    kept = text[:low]
    if low < len(text) and not text[low].isspace() and " " in kept:
        kept = kept[: kept.rindex(" ")]
    return kept.rstrip() + CUT if kept.strip() else ""
