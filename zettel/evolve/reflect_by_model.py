"""The reflector that calls a language model: one request about several groups of related notes.

Each group has a short id. An insight is invalid if it is a duplicate, too long, or shares no word with its notes; this
affects only its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from zettel.errors import InvalidInput
from zettel.evolve.insights import MAX_CHARS, place
from zettel.llm.answer_parsing import ask_for_items
from zettel.llm.note_fields import NO_ITEM, UNREADABLE, one_line
from zettel.llm.prompt_lines import clip, date_of, line, short_ids
from zettel.llm.schemas import TEXT, list_schema
from zettel.model import Note
from zettel.ports.language_model import Ask, InvalidItem, ReflectionResult, Request
from zettel.prompts import Prompt, load_prompt
from zettel.text.tokens import tokenize

BATCH = 6
"""Groups per request."""
SHOWN = 12
"""Notes per group in a request, the most central ones."""
SHOWN_CHARS = 200
"""Characters of each note in a request."""
TOKENS_PER_INSIGHT = 160
EXTRA_TOKENS = 100
"""The token limit of an answer: per group, and in addition."""
DUPLICATE_ITEM = InvalidItem("the model's answer contains several items for this theme")
TOO_LONG = InvalidItem("the model's item for this theme is too long")
UNRELATED = InvalidItem("the model's item for this theme shares no word with its prompt")

SCHEMA = list_schema("insights", {"id": TEXT, "insight": TEXT})
"""The JSON schema of an answer."""


class LiteLLMReflector:
    """Writes insights by a model. ``batch`` limits the groups of one request. Raises ``InvalidInput``."""

    def __init__(self, batch: int = BATCH) -> None:
        if batch < 1:
            raise InvalidInput(f"batch must be at least 1, got {batch}")
        self.batch = batch
        self.shown = SHOWN

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt."""
        return load_prompt("reflect")

    async def reflect(self, groups: Sequence[Sequence[Note]], ask: Ask) -> ReflectionResult:
        """Send one request about all groups. Raises what ``ask`` raises."""
        ids = list(short_ids([min(note.id for note in group) for group in groups]).values())
        answered = await ask_for_items(ask, self._request(groups, ids), [note.id for group in groups for note in group])
        if answered is None:
            return ReflectionResult((UNREADABLE,) * len(groups))
        answers, answer = answered
        insights = tuple(_insight(id, group, answers) for id, group in zip(ids, groups, strict=True))
        return ReflectionResult(insights, answer.model, self.prompt.name)

    def _request(self, groups: Sequence[Sequence[Note]], ids: Sequence[str]) -> Request:
        lines = [line(id=id, notes=_notes(group)) for id, group in zip(ids, groups, strict=True)]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["themes:", *lines]),
            schema=SCHEMA,
            max_tokens=EXTRA_TOKENS + len(groups) * TOKENS_PER_INSIGHT,
        )


def _notes(group: Sequence[Note]) -> list[str]:
    lines = []
    for note in sorted(group, key=place):
        head = " ".join(part for part in (date_of(note), note.speaker or note.title or "") if part)
        lines.append(f"{head}: {clip(note.content, SHOWN_CHARS)}" if head else clip(note.content, SHOWN_CHARS))
    return lines


def _insight(id: str, group: Sequence[Note], answers: Sequence[Any]) -> str | InvalidItem:
    """Return the insight about a group, or the reason why it is invalid."""
    own = [item for item in answers if isinstance(item, dict) and str(item.get("id", "")).strip() == id]
    if len(own) != 1:
        return DUPLICATE_ITEM if own else NO_ITEM
    insight = own[0].get("insight")
    text = one_line(insight) if isinstance(insight, str) else ""
    if not text:
        return NO_ITEM
    if len(text) > MAX_CHARS:
        return TOO_LONG
    return text if set(tokenize(text)) & set(tokenize(" ".join(_notes(group)))) else UNRELATED
