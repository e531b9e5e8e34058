"""Core memory: what a model is to know in every conversation, as text for its system prompt.

Of the three tiers it is the first: what is pinned, and the profile that ``evolve`` keeps of the people who speak. The
second is what a search recalls, the third the archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from zettel.async_memory import AsyncMemory
from zettel.errors import InvalidInput
from zettel.evolve.decay import PINNED
from zettel.evolve.profile import PROFILE
from zettel.integrations.either import Either, reach, wait
from zettel.llm.lines import clip, date_of
from zettel.model import Kind, Note, Scope
from zettel.search.pack import SPEAKER_CHARS, estimate_tokens

CORE_TOKENS = 400
"""Size of the core in tokens, unless another is asked for: a page of notes in every prompt."""
PINNED_CHARS = 300
"""Characters of a pinned note that are shown."""
PAGE = 200
"""Pinned notes read at once."""
PINNED_HEAD, PROFILE_HEAD = "## Always to be known", "## Of the people who speak"


def core(memory: Either, max_tokens: int = CORE_TOKENS, *, scope: Scope | None = None) -> str:
    """What belongs into every prompt, in at most ``max_tokens``; "" if there is nothing.

    First what is tagged ``pinned``, the most important and of these the newest first, then the profile. What was
    replaced is left out, and so is what looks like instructions to a model: nothing of that sort gets into a system
    prompt by itself. Raises ``InvalidInput``.
    """
    return wait(memory, partial(_core, max_tokens, scope))


async def acore(memory: Either, max_tokens: int = CORE_TOKENS, *, scope: Scope | None = None) -> str:
    """The same, awaited."""
    return await reach(memory, partial(_core, max_tokens, scope))


async def _core(max_tokens: int, scope: Scope | None, memory: AsyncMemory) -> str:
    if max_tokens < 1:
        raise InvalidInput(f"max_tokens={max_tokens} leaves no room for a word")
    notes: list[Note] = []
    cursor: str | None = None
    while True:
        page = await memory.list(tags=[PINNED], limit=PAGE, cursor=cursor, scope=scope)
        notes += [note for note in page.notes if note.valid_to is None and not note.flags]
        cursor = page.cursor
        if cursor is None:
            break
    notes.sort(key=lambda note: (-note.importance, -note.seq))
    known = (await memory.list(kinds=[Kind.INSIGHT], tags=[PROFILE], limit=1, scope=scope)).notes
    lines = _fitting([PINNED_HEAD, *map(_line, notes)], max_tokens)
    if known:
        said = [line for line in known[0].content.splitlines() if line.strip()]
        lines = _fitting([*lines, PROFILE_HEAD, *said], max_tokens)
    return "\n".join(lines)


def _fitting(lines: Sequence[str], max_tokens: int) -> list[str]:
    """As many of the lines as fit, from the first on, a heading not without a line below it."""
    kept: list[str] = []
    for line in lines:
        if estimate_tokens("\n".join([*kept, line])) > max_tokens:
            break
        kept.append(line)
    while kept and not kept[-1].startswith("- "):
        kept.pop()
    return kept


def _line(note: Note) -> str:
    head = " ".join(part for part in (date_of(note), clip(note.role or note.title or "", SPEAKER_CHARS)) if part)
    text = clip(note.content, PINNED_CHARS)
    return f"- {head}: {text}" if head else f"- {text}"
