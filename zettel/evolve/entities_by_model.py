"""The matcher of names that calls a language model: one request about the pairs of names that may be one entity.

Only pairs that share a word or a beginning are asked about, and those of a phrase ("my wife") with a name of the same
session. Pairs that a person or a rule decided are left out. An answer needs a known pair and a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from zettel.llm.answer_parsing import ask_for_items
from zettel.llm.note_fields import one_line
from zettel.llm.prompt_lines import MAX_REASON, clip, date_of, line, short_ids
from zettel.llm.schemas import TEXT, list_schema
from zettel.model import Note
from zettel.ports.language_model import Ask, Request
from zettel.prompts import Prompt, load_prompt

PAIRS = 20
"""The most pairs of a request."""
TEXTS = 3
"""The most notes shown for each name."""
MAX_TEXT = 240
"""Characters of a note in a request."""
TOKENS = 1200
"""The token limit of an answer: twenty reasons."""
SCHEMA = list_schema("same", {"id": TEXT, "reason": TEXT})
"""The JSON schema of an answer."""


class NamePair(NamedTuple):
    """Two names that may be one entity, and notes with each of them."""

    one: str
    other: str
    notes_of_one: tuple[Note, ...]
    notes_of_other: tuple[Note, ...]

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes with one of the names, each once."""
        return tuple({note.id: note for note in (*self.notes_of_one, *self.notes_of_other)}.values())


class _Item(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3)]


class LiteLLMEntityMatcher:
    """Decides by a model which names are one entity."""

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt."""
        return load_prompt("entities")

    async def same(self, pairs: Sequence[NamePair], ask: Ask) -> tuple[list[tuple[NamePair, str]], str] | None:
        """Return the pairs that are one entity, each with the reason, and the name of the model.

        None for an unusable answer. Raises what ``ask`` raises.
        """
        ids = list(short_ids(f"{pair.one} {pair.other}" for pair in pairs).values())
        shown = sorted({note.id for pair in pairs for note in pair.notes})
        answered = await ask_for_items(ask, self._request(pairs, ids), shown)
        if answered is None:
            return None
        answers, answer = answered
        by_id = dict(zip(ids, pairs, strict=True))
        same: dict[str, str] = {}
        for each in answers:
            item = _parsed(each)
            if item is not None and item.id in by_id:
                same.setdefault(item.id, clip(one_line(item.reason), MAX_REASON))
        return [(by_id[id], reason) for id, reason in same.items()], answer.model

    def _request(self, pairs: Sequence[NamePair], ids: Sequence[str]) -> Request:
        lines = [
            line(
                id=id, one=pair.one, other=pair.other,
                texts_of_one=[_quoted(note) for note in pair.notes_of_one],
                texts_of_other=[_quoted(note) for note in pair.notes_of_other],
            )
            for id, pair in zip(ids, pairs, strict=True)
        ]  # fmt: skip
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["pairs:", *lines]),
            schema=SCHEMA,
            max_tokens=TOKENS,
        )


def _quoted(note: Note) -> str:
    speaker = f"{note.speaker}: " if note.speaker else ""
    return f"{date_of(note)} {speaker}{clip(one_line(note.content), MAX_TEXT)}".strip()


def _parsed(item: Any) -> _Item | None:
    try:
        return _Item.model_validate(item)
    except ValidationError:
        return None
