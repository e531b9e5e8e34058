"""The profiler that calls a language model: one request about the statements of a scope's people.

Each statement has a short id. A line of the answer is dropped if it names no statement of its person, is too long, or
shares no word with its statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from zettel.evolve.profile import INSTRUCTIONS_HEAD, LASTING_HEAD, MAX_STATEMENT, RECENT_HEAD, ProfileLine, Statement
from zettel.llm.answer_parsing import ask_for_items
from zettel.llm.note_fields import one_line
from zettel.llm.prompt_lines import date_of, line, short_ids
from zettel.llm.schemas import TEXT, TEXTS, enum_schema, list_schema
from zettel.ports.language_model import Ask, Request
from zettel.prompts import Prompt, load_prompt
from zettel.text.tokens import tokenize

TOKENS = 2500
"""The token limit of an answer: sixty lines."""
_HEADS = {"instruction": INSTRUCTIONS_HEAD, "lasting": LASTING_HEAD, "recent": RECENT_HEAD}
SCHEMA = list_schema("profile", {"head": enum_schema(tuple(_HEADS)), "by": TEXT, "line": TEXT, "of": TEXTS})
"""The JSON schema of an answer."""


class _Item(BaseModel):
    model_config = ConfigDict(extra="ignore")

    head: Literal["instruction", "lasting", "recent"]
    by: str
    line: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=MAX_STATEMENT)]
    of: list[str]


class LiteLLMProfiler:
    """Writes the lines of a profile by a model."""

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt."""
        return load_prompt("profile")

    async def lines(
        self, statements: Sequence[Statement], ask: Ask
    ) -> tuple[list[ProfileLine], str | None]:
        """Return the valid lines about these statements and the name of the model; no lines for an unusable answer.

        Raises what ``ask`` raises.
        """
        ids = list(short_ids(f"{each.note.id} {each.text}" for each in statements).values())
        shown = sorted({each.note.id for each in statements})
        answered = await ask_for_items(ask, self._request(statements, ids), shown)
        if answered is None:
            return [], None
        answers, answer = answered
        by_id = dict(zip(ids, statements, strict=True))
        lines = (_line(item, by_id) for item in answers)
        return [line for line in lines if line is not None], answer.model

    def _request(self, statements: Sequence[Statement], ids: Sequence[str]) -> Request:
        lines = [
            line(id=id, on=date_of(each.note), by=each.person, text=one_line(each.text))
            for id, each in zip(ids, statements, strict=True)
        ]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["statements:", *lines]),
            schema=SCHEMA,
            max_tokens=TOKENS,
        )


def _line(item: Any, by_id: dict[str, Statement]) -> ProfileLine | None:
    """Return the line of an item, or None if its statements do not support it."""
    try:
        parsed = _Item.model_validate(item)
    except ValidationError:
        return None
    sources = [by_id[id] for id in parsed.of if id in by_id and by_id[id].person == parsed.by]
    words = {token for source in sources for token in source.tokens}
    text = one_line(parsed.line)
    if not sources or words.isdisjoint(tokenize(text)):
        return None
    when = max((source.times[-1] for source in sources if source.times), default=None)
    dated = f"{text} ({when.date().isoformat()})" if when else text
    return ProfileLine(_HEADS[parsed.head], parsed.by, dated, tuple(source.note.id for source in sources))
