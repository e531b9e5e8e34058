"""Core memory: pinned notes and the profile as text for a system prompt.

It is the first of three tiers of memory. Search results are the second tier, the archive is the third.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from zettel.async_memory import AsyncMemory
from zettel.core.authority import is_on_probation, is_trusted
from zettel.core.decisions import BY_PEOPLE
from zettel.core.present import has_ended
from zettel.errors import InvalidInput
from zettel.evolve.lessons import applies
from zettel.integrations.note_access import all_notes
from zettel.integrations.recalled_text import normalized
from zettel.integrations.sync_or_async import AnyMemory, run_async, run_sync
from zettel.llm.prompt_lines import clip, date_of
from zettel.model import Kind, Note, Scope
from zettel.model.tags import LESSON, PINNED, PROFILE
from zettel.search.pack import SPEAKER_CHARS, estimate_tokens

CORE_TOKENS = 400
"""Default size of the core memory in tokens."""
PINNED_CHARS = 300
"""Characters shown of a pinned note."""
PROVEN = 0.7
"""The lowest confidence of a lesson in the core memory: four successes and no more than one failure."""
_DATES = re.compile(r" \([^()]*\)$")
"""The days of a statement at the end of its line in a profile."""
PINNED_HEAD, PROFILE_HEAD, LESSONS_HEAD = "## Always to be known", "## Of the people who speak", "## What worked"


def core(
    memory: AnyMemory, max_tokens: int = CORE_TOKENS, *, task: str | None = None, scope: Scope | None = None
) -> str:  # fmt: skip
    """Return the core memory in at most ``max_tokens``; "" if it is empty.

    Notes tagged ``pinned`` come first, ordered by importance and then by age, newest first. The profile follows, with
    the standing instructions and without statements of pinned notes, and then the lessons with a confidence of at
    least PROVEN. Superseded notes, notes on probation (by an untrusted writer, or flagged as instructions to a model),
    and notes that no caller pinned are left out: a hashtag in a text pins nothing.

    With a ``task``, lessons for situations like it come right after the pinned notes, also less proven ones, and no
    other lessons. Raises ``InvalidInput``.
    """
    return run_sync(memory, partial(_core, max_tokens, task, scope))


async def acore(
    memory: AnyMemory, max_tokens: int = CORE_TOKENS, *, task: str | None = None, scope: Scope | None = None
) -> str:  # fmt: skip
    """Async version of ``core``."""
    return await run_async(memory, partial(_core, max_tokens, task, scope))


async def _core(max_tokens: int, task: str | None, scope: Scope | None, memory: AsyncMemory) -> str:
    if max_tokens < 1:
        raise InvalidInput(f"max_tokens={max_tokens} is too small: use 1 or more")
    pinned = all_notes(memory, tags=[PINNED], scope=scope)
    notes = [
        note
        async for note in pinned
        if not has_ended(note)
        and not is_on_probation(note)
        and await _is_pinned(memory, scope, note)
    ]
    notes.sort(key=lambda note: (-note.importance, -note.seq))
    profiles = (await memory.list(kinds=[Kind.INSIGHT], tags=[PROFILE], limit=1, scope=scope)).notes
    profile = [line for line in profiles[0].content.splitlines() if line.strip()] if profiles else []
    lessons = [LESSONS_HEAD, *(f"- {clip(note.content, PINNED_CHARS)}" for note in await _lessons(memory, task, scope))]
    profile = _without_repeats(profile, notes)
    lines = _fitting([PINNED_HEAD, *map(_line, notes)], max_tokens)
    for section in ([PROFILE_HEAD, *profile], lessons) if task is None else (lessons, [PROFILE_HEAD, *profile]):
        lines = _fitting([*lines, *section], max_tokens)
    return "\n".join(lines)


async def _lessons(memory: AsyncMemory, task: str | None, scope: Scope | None) -> list[Note]:
    """Return proven lessons, or those that apply to a task, the most proven first."""
    learned = all_notes(memory, kinds=[Kind.PROCEDURAL.value], tags=[LESSON], scope=scope)
    lessons = [
        note
        async for note in learned
        if (note.confidence >= PROVEN if task is None else applies(note.content, task))
        and note.valid_to is None
        and not is_on_probation(note)
    ]
    return sorted(lessons, key=lambda note: (-note.confidence, -note.seq))


async def _is_pinned(memory: AsyncMemory, scope: Scope | None, note: Note) -> bool:
    """Return whether a caller pinned the note; in stores of older versions, its text or a model may have done so."""
    if "tags" not in note.authored or is_trusted(note):
        return "tags" in note.authored
    changes = [revision for revision in await memory.history(note.id, scope=scope) if revision.live]
    tags = [revision.change.get("tags") for revision in changes if revision.cause.by in BY_PEOPLE]
    return any(isinstance(written, list) and PINNED in written for written in tags)


def _fitting(lines: Sequence[str], max_tokens: int) -> list[str]:
    """Return the leading lines that fit, without a heading at the end."""
    fitting: list[str] = []
    for line in lines:
        if estimate_tokens("\n".join([*fitting, line])) > max_tokens:
            break
        fitting.append(line)
    while fitting and not fitting[-1].startswith("- "):
        fitting.pop()
    return fitting


def _without_repeats(profile: Sequence[str], pinned: Sequence[Note]) -> list[str]:
    """Return the lines of a profile without statements of pinned notes, and without headings of nothing."""
    shown = [normalized(clip(note.content, PINNED_CHARS)) for note in pinned]
    lines = []
    for line in profile:
        statement = normalized(_DATES.sub("", line).partition(": ")[2])
        if not (line.startswith("- ") and any(statement in text for text in shown)):
            lines.append(line)
    return [line for line, following in pairwise([*lines, ""]) if "- " in (line[:2], following[:2])]


def _line(note: Note) -> str:
    head = " ".join(part for part in (date_of(note), clip(note.speaker or note.title or "", SPEAKER_CHARS)) if part)
    text = clip(note.content, PINNED_CHARS)
    return f"- {head}: {text}" if head else f"- {text}"
