"""Packs hits into a token budget as text for a prompt, in order of time, with dates and speakers."""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from zettel.llm.prompt_lines import clip
from zettel.search.passage import CUT, marked_passage
from zettel.text.tokens import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zettel.model import Hit, Note

CHARACTERS_PER_TOKEN = 4
"""Characters per token of common tokenizers for English. Other languages have slightly fewer."""
OPENING_SHARE = 1 / 3
"""Largest share of the tokens for the opening."""
BEST_SHARE = 2 / 3
"""Largest share of the tokens for a best hit that is too long. The other hits may be nearly as good."""
ASKED_CHARS = 120
"""Longest question before its answer."""
SPEAKER_CHARS = 60
"""Longest speaker in the text. Longer strings are not names."""

_ASKED_LINE = re.compile(r"> (?:.{1,60} )?asked: ")
_UNSPACED_SIGN = re.compile(f"[{UNSPACED}]")


def estimate_tokens(text: str) -> int:
    """Approximate number of tokens: 1 per 4 characters, 1 per character of a script without spaces."""
    unspaced = len(_UNSPACED_SIGN.findall(text))
    return math.ceil((len(text) - unspaced) / CHARACTERS_PER_TOKEN) + unspaced


def pack(
    hits: Sequence[Hit], max_tokens: int, opening: str = "", questions: Mapping[str, Note] = MappingProxyType({})
) -> str:
    """The ``hits`` (best first) that fit into ``max_tokens``, under a heading for each day and session.

    A hit that does not fit is replaced by its passage, or else skipped; the best hit is shortened further. The first
    lines of ``opening`` that fit its share come first. ``questions`` are the notes that hits answer, by id. A line with
    the question precedes its answer if it fits and the question is not in the text itself.
    """
    if opening and (head := _first_lines(opening, int(OPENING_SHARE * max_tokens))):
        rest = pack(hits, max(max_tokens - estimate_tokens(f"{head}\n\n"), 0), questions=questions)
        return f"{head}\n\n{rest}" if rest else head
    if not hits:
        return ""
    chosen = list(hits)
    if estimate_tokens(_render([_entry(chosen[0])])) > max_tokens:
        most = int(BEST_SHARE * max_tokens) if len(chosen) > 1 else max_tokens - 1  # 1 for rounding
        chosen[:1] = _shortened(chosen[0], most)
    entries: list[_Entry] = []
    for hit in chosen:
        for entry in _forms(hit, questions):
            if estimate_tokens(_render([*entries, entry])) <= max_tokens:
                entries.append(entry)
                break
    if not entries:
        return _cut(_render([_entry((chosen or hits)[0])]), max_tokens)
    events = {entry.event for entry in entries}
    return _render([entry._replace(asked="") if entry.question_event in events else entry for entry in entries])


def _forms(hit: Hit, questions: Mapping[str, Note]) -> Iterator[_Entry]:
    """The entries of a hit, longest first: with its question, without it, with its passage only."""
    entry = _entry(hit)
    question = questions.get(hit.answers or "")
    if question is not None and not question.flags and (asked := _asked(question)):
        yield entry._replace(asked=asked, question_event=question.event_ids[0])
    yield entry
    if hit.passage and len(hit.passage) < len(hit.note.content.strip()):
        yield _entry(_with_content(hit, marked_passage(hit.passage, hit.note.content)))


def is_asked_line(line: str) -> bool:
    """Return True for a line of packed text with the question before an answer."""
    return _ASKED_LINE.match(line) is not None


def _asked(question: Note) -> str:
    """A question as one line, with its beginning."""
    speaker = f"{clip(question.speaker, SPEAKER_CHARS)} " if question.speaker else ""
    text = clip(question.content, ASKED_CHARS)
    return f"> {speaker}asked: {text}" if text else ""


def _shortened(hit: Hit, max_tokens: int) -> list[Hit]:
    """The hit with as much of its content as fits with heading, time and speaker; empty if nothing fits.

    The content begins with the passage, or with its own beginning if that fits with the whole passage.
    """
    content, passage = hit.note.content, hit.passage.strip()
    most = max_tokens - estimate_tokens(_render([_entry(hit)])) + estimate_tokens(content)
    text = _cut(content, most)
    if passage and passage not in text:
        place = content.find(passage)
        rest = marked_passage(passage, content) if place < 0 else f"{CUT if place else ''}{content[place:].rstrip()}"
        text = rest if estimate_tokens(rest) <= most else _cut(rest, most)
    return [_with_content(hit, text)] if text.strip(CUT) else []


def _with_content(hit: Hit, content: str) -> Hit:
    return hit.model_copy(update={"note": hit.note.model_copy(update={"content": content}), "passage": ""})


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
    event: str
    asked: str = ""
    question_event: str = ""


def _entry(hit: Hit) -> _Entry:
    note = hit.note
    return _Entry(_place(note), _heading(note), _line(note, hit.why.time if note.valid_to else ""), note.event_ids[0])


def _render(entries: Sequence[_Entry]) -> str:
    lines: list[str] = []
    heading = ""
    for entry in sorted(entries):
        if entry.heading != heading:
            heading = entry.heading
            lines += ["", heading] if lines and heading else [heading]
        if entry.asked:
            lines.append(entry.asked)
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
    notices = "; ".join(filter(None, (repetition(note), validity)))
    ended = f" ({notices})" if notices else ""
    body = note.content.strip().replace("\n", "\n  ")
    return f"- {clock}{speaker}{title}{body}{ended}"


def repetition(note: Note) -> str:
    """How often and when a merged statement was made: "3 times, last on 2024-07-03"; "" if it was made on one day."""
    days = sorted({moment.date() for moment in note.occurrences})
    return f"{len(note.event_ids)} times, last on {days[-1].isoformat()}" if len(days) > 1 else ""


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
