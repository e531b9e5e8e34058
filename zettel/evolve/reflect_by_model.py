"""Insights that a language model writes: one question about several groups of notes that belong together.

Each group has an id that says nothing. What an answer says of another group, twice of the same one, at too great a
length, or without any word of what it was shown, is a flaw of that group alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from zettel.annotate.tokens import tokenize
from zettel.annotate.written import NO_ITEM, UNREADABLE, one_line
from zettel.errors import InvalidInput, ModelUnusable
from zettel.evolve.insights import MAX_CHARS, place
from zettel.llm.answers import items
from zettel.llm.lines import clip, date_of, line, short_ids
from zettel.llm.ports import Ask, Flaw, Reflected, Request
from zettel.model import Note
from zettel.prompts import Prompt, load_prompt

BATCH = 6
"""Groups asked about together."""
SHOWN = 12
"""Notes of a group that are shown, those with most ties in it."""
SHOWN_CHARS = 200
"""Characters of each."""
TOKENS_PER_INSIGHT = 160
TOKENS_OVER = 100
"""Tokens that an answer may have: for each group, and besides."""
DOUBLED = Flaw("the model's answer holds several items for this theme")
TOO_LONG = Flaw("the model's item for this theme is too long")
UNFOUNDED = Flaw("the model's item for this theme has no word in common with what it was shown")

_TEXT = {"type": "string"}
_INSIGHT = {
    "type": "object",
    "properties": {"id": _TEXT, "insight": _TEXT},
    "required": ["id", "insight"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"insights": {"type": "array", "items": _INSIGHT}},
    "required": ["insights"],
    "additionalProperties": False,
}
"""What an answer looks like."""


class LiteLLMReflector:
    """Has a model write insights. ``batch`` bounds the groups of one question. Raises ``InvalidInput``."""

    def __init__(self, batch: int = BATCH) -> None:
        if batch < 1:
            raise InvalidInput(f"batch={batch}: at least 1 is needed")
        self.batch = batch
        self.shown = SHOWN

    @cached_property
    def prompt(self) -> Prompt:
        """What the model is told."""
        return load_prompt("reflect")

    async def reflect(self, groups: Sequence[Sequence[Note]], ask: Ask) -> Reflected:
        """One question about all of the groups. Raises what ``ask`` raises."""
        ids = list(short_ids([min(note.id for note in group) for group in groups]).values())
        unreadable = Reflected((UNREADABLE,) * len(groups))
        try:
            answer = await ask(self._request(groups, ids), [note.id for group in groups for note in group])
        except ModelUnusable as error:
            if error.spent is None:
                raise
            return unreadable  # the model was asked, and refused or said nothing
        try:
            found = items(answer.text, answer.cut)
        except ModelUnusable:
            return unreadable
        said = tuple(_insight(id, group, found) for id, group in zip(ids, groups, strict=True))
        return Reflected(said, answer.model, self.prompt.name)

    def _request(self, groups: Sequence[Sequence[Note]], ids: Sequence[str]) -> Request:
        lines = [line(id=id, notes=_notes(group)) for id, group in zip(ids, groups, strict=True)]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["themes:", *lines]),
            schema=SCHEMA,
            max_tokens=TOKENS_OVER + len(groups) * TOKENS_PER_INSIGHT,
        )


def _notes(group: Sequence[Note]) -> list[str]:
    told = []
    for note in sorted(group, key=place):
        who = note.role or note.title or ""
        head = " ".join(part for part in (date_of(note), who) if part)
        told.append(f"{head}: {clip(note.content, SHOWN_CHARS)}" if head else clip(note.content, SHOWN_CHARS))
    return told


def _insight(id: str, group: Sequence[Note], found: Sequence[Any]) -> str | Flaw:
    """What an answer says of a group, if it says it once and of what was shown."""
    own = [item for item in found if isinstance(item, dict) and str(item.get("id", "")).strip() == id]
    if len(own) != 1:
        return DOUBLED if own else NO_ITEM
    told = own[0].get("insight")
    text = one_line(told) if isinstance(told, str) else ""
    if not text:
        return NO_ITEM
    if len(text) > MAX_CHARS:
        return TOO_LONG
    return text if set(tokenize(text)) & set(tokenize(" ".join(_notes(group)))) else UNFOUNDED
