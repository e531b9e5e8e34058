"""The annotator that calls a language model: many turns in one request, each with its own id.

Structured output only makes an answer readable. Every item is validated by itself, and a turn without a valid item gets
an ``InvalidItem``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from zettel.errors import InvalidInput, InvalidModelOutput
from zettel.llm.answer_parsing import items
from zettel.llm.note_fields import UNREADABLE, one_line, validated
from zettel.llm.prompt_lines import about_tokens, clip, day, line, short_ids
from zettel.llm.schemas import NUMBER, TEXT, TEXTS, enum_schema, list_schema, object_schema
from zettel.ports.language_model import (
    AnnotationItem,
    AnnotationRequest,
    AnnotationResult,
    Ask,
    InvalidItem,
    ModelAnnotation,
    Request,
)
from zettel.prompts import Prompt, load_prompt
from zettel.text.tokens import phrase_key

Mode = Literal["default", "lean"]

TEXT_TOKENS = 3000
"""Tokens of turns in one request: enough for 20 turns of a chat, and within small context windows."""
BEFORE_CHARS = 300
"""Characters of a turn that is only context."""
MAX_SUMMARY = 600
"""Characters; a longer summary is dropped."""
_SUMMARY = re.compile(r'(?<!\\)"summary"\s*:\s*("(?:[^"\\]|\\.)*")')


class _ModeOptions(NamedTuple):
    """The options of a mode; the last two limit an answer, in tokens: per item, and for the rest."""

    prompt: str
    batch: int
    before: int
    tokens_per_item: int
    extra_tokens: int


_MODES: Mapping[str, _ModeOptions] = {
    "default": _ModeOptions("annotate", 24, 3, 250, 300),
    "lean": _ModeOptions("annotate-lean", 48, 1, 120, 100),
}

_LEAN_FIELDS = {"id": TEXT, "context": TEXT, "keywords": TEXTS, "tags": TEXTS}
_FIELDS = {
    **_LEAN_FIELDS,
    "importance": NUMBER,
    "kind": enum_schema(["episodic", "semantic", "procedural"]),
    "facts": {"type": "array", "items": object_schema({"text": TEXT, "confidence": NUMBER})},
}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "default": object_schema({"notes": {"type": "array", "items": object_schema(_FIELDS)}, "summary": TEXT}),
    "lean": list_schema("notes", _LEAN_FIELDS),
}
"""The JSON schema of an answer, by mode."""


class LiteLLMAnnotator:
    """Annotates turns by a language model.

    Args:
        mode: ``lean`` writes only context, keywords and tags, and decides no links: 38 % of the tokens.
        batch: The greatest number of turns in one request.
        text_tokens: The greatest length of their text, in tokens; lower it for models with a small context window.

    Raises:
        InvalidInput: The mode is unknown, or a number is outside its limits.

    Examples:
        >>> from zettel import LiteLLMAnnotator
        >>> annotator = LiteLLMAnnotator("lean")
    """

    def __init__(
        self,
        mode: Mode = "default",
        batch: int | None = None,
        text_tokens: int = TEXT_TOKENS,
    ) -> None:
        if mode not in get_args(Mode):
            raise InvalidInput(f"mode must be {' or '.join(get_args(Mode))}, got {mode!r}")
        for name, value in (("batch", batch), ("text_tokens", text_tokens)):
            if value is not None and value < 1:
                raise InvalidInput(f"{name} must be at least 1, got {value}")
        self._options = _MODES[mode]
        self._schema = SCHEMAS[mode]
        self._text_tokens = text_tokens
        self.name = f"litellm {mode}"
        self.batch = batch or self._options.batch
        self.before = self._options.before
        self.links = mode == "default"

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt of this mode."""
        return load_prompt(self._options.prompt)

    @cached_property
    def _shown(self) -> frozenset[str]:
        answers = [items(answer) for _, answer in self.prompt.examples]
        return frozenset(phrase_key(item["context"]) for answer in answers for item in answer)

    async def annotate(self, reading: AnnotationRequest, ask: Ask) -> AnnotationResult:
        """Send one request, or several if the texts are long. Raises what ``ask`` raises."""
        turns: list[ModelAnnotation | InvalidItem | None] = []
        summaries: list[str] = []
        model = None
        for part in self._parts(reading):
            ids = short_ids(turn.note for turn in part.turns)
            answer = await ask(self._request(part, ids), [turn.note for turn in (*part.before, *part.turns)])
            model = answer.model
            try:
                turns += validated(part.turns, part.before, ids, items(answer.text, answer.cut), self._shown)
            except InvalidModelOutput:
                turns += [UNREADABLE] * len(part.turns)
            summaries.append(_summary(answer.text))
        return AnnotationResult(tuple(turns), " ".join(filter(None, summaries)), model, self.prompt.name)

    def _parts(self, reading: AnnotationRequest) -> Iterator[AnnotationRequest]:
        """Split the request within the limits; each part has the turns before it as context."""
        known = [*reading.before, *reading.turns]
        first = len(reading.before)
        start, tokens = first, 0
        for place in range(first, len(known)):
            size = about_tokens(known[place].passage.content)
            if place > start and (tokens + size > self._text_tokens or place - start == self.batch):
                yield self._part(known, start, place)
                start, tokens = place, 0
            tokens += size
        if start < len(known):
            yield self._part(known, start, len(known))

    def _part(self, known: Sequence[AnnotationItem], start: int, end: int) -> AnnotationRequest:
        return AnnotationRequest(tuple(known[start:end]), tuple(known[max(0, start - self.before) : start]))

    def _request(self, part: AnnotationRequest, ids: Mapping[str, str]) -> Request:
        lines = ["before:", *(_line(turn, "", BEFORE_CHARS) for turn in part.before)] if part.before else []
        lines += ["items:", *(_line(turn, ids[turn.note]) for turn in part.turns)]
        max_tokens = self._options.extra_tokens + len(part.turns) * self._options.tokens_per_item
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(lines),
            schema=self._schema,
            max_tokens=max_tokens,
        )


def _line(turn: AnnotationItem, short: str, longest: int | None = None) -> str:
    passage = turn.passage
    text = passage.content if longest is None else clip(passage.content, longest)
    return line(id=short, by=passage.speaker, on=day(passage.occurred_at), title=passage.title, text=text)


def _summary(answer: str) -> str:
    """Return the summary in an answer, which may be cut or surrounded by text; "" without a usable one."""
    match = _SUMMARY.search(answer)
    if match is None:
        return ""
    try:
        summary = one_line(json.loads(match[1], strict=False))
    except ValueError:
        return ""
    return summary if len(summary) <= MAX_SUMMARY else ""
