"""Notes written by a language model: many turns in one question, each under an id of its own.

Structured output keeps an answer readable and nothing more: every item is checked by itself (see ``written``), and a
turn without a valid one gets a ``Flaw``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from zettel.annotate.tokens import phrase_key
from zettel.annotate.written import UNREADABLE, judged, one_line
from zettel.errors import InvalidInput, ModelUnusable
from zettel.llm.answers import items
from zettel.llm.lines import about_tokens, clip, day, line, short_ids
from zettel.llm.ports import Ask, Flaw, Reading, Request, Turn, Written, Wrote
from zettel.prompts import Prompt, load_prompt

Mode = Literal["default", "lean"]

TEXT_TOKENS = 3000
"""Tokens of turns in one question: what small windows and patience take, and 20 turns of a chat never reach."""
BEFORE_CHARS = 300
"""Characters of a turn that is only read for context."""
MAX_SUMMARY = 600
"""Characters: a summary is a note, and no essay; a longer one is left out."""
_SUMMARY = re.compile(r'(?<!\\)"summary"\s*:\s*("(?:[^"\\]|\\.)*")')


class _Manner(NamedTuple):
    """What a mode stands for; the last two bound an answer, in tokens: each item's share and the rest."""

    prompt: str
    batch: int
    before: int
    tokens_per_item: int
    tokens_over: int


_MANNERS: Mapping[str, _Manner] = {
    "default": _Manner("annotate", 24, 3, 250, 300),
    "lean": _Manner("annotate-lean", 48, 1, 120, 100),
}

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_LEAN_FIELDS = {"id": _TEXT, "context": _TEXT, "keywords": _TEXTS, "tags": _TEXTS}
_FIELDS = {
    **_LEAN_FIELDS,
    "importance": {"type": "number"},
    "kind": {"type": "string", "enum": ["episodic", "semantic", "procedural"]},
    "facts": _TEXTS,
}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The strict form that providers want: every property required, and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "default": _object({"notes": {"type": "array", "items": _object(_FIELDS)}, "summary": _TEXT}),
    "lean": _object({"notes": {"type": "array", "items": _object(_LEAN_FIELDS)}}),
}
"""What an answer looks like, by mode."""


class LiteLLMAnnotator:
    """Has a model write the notes.

    ``mode="lean"`` asks for context, keywords and tags alone, and has no links decided: 38 % of the tokens.
    ``batch`` bounds the turns of one question and ``text_tokens`` their text: fewer for models with a small window.
    Raises ``InvalidInput``.
    """

    remote = True

    def __init__(
        self,
        mode: Mode = "default",
        batch: int | None = None,
        text_tokens: int = TEXT_TOKENS,
    ) -> None:
        if mode not in get_args(Mode):
            raise InvalidInput(f"there is no mode {mode!r} of annotating; there are {', '.join(get_args(Mode))}")
        for name, value in (("batch", batch), ("text_tokens", text_tokens)):
            if value is not None and value < 1:
                raise InvalidInput(f"{name}={value}: at least 1 is needed")
        self._manner = _MANNERS[mode]
        self._schema = SCHEMAS[mode]
        self._text_tokens = text_tokens
        self.name = f"litellm {mode}"
        self.batch = batch or self._manner.batch
        self.before = self._manner.before
        self.links = mode == "default"

    @cached_property
    def prompt(self) -> Prompt:
        """What the model is told."""
        return load_prompt(self._manner.prompt)

    @cached_property
    def _shown(self) -> frozenset[str]:
        answers = [items(answer) for _, answer in self.prompt.examples]
        return frozenset(phrase_key(item["context"]) for answer in answers for item in answer)

    async def annotate(self, reading: Reading, ask: Ask) -> Wrote:
        """One question, or several where the texts are long. Raises what ``ask`` raises."""
        turns: list[Written | Flaw | None] = []
        summaries: list[str] = []
        model = None
        for part in self._parts(reading):
            ids = short_ids(turn.note for turn in part.turns)
            answer = await ask(self._request(part, ids), [turn.note for turn in (*part.before, *part.turns)])
            model = answer.model
            try:
                turns += judged(part.turns, part.before, ids, items(answer.text, answer.cut), self._shown)
            except ModelUnusable:
                turns += [UNREADABLE] * len(part.turns)
            summaries.append(_summary(answer.text))
        return Wrote(tuple(turns), " ".join(filter(None, summaries)), model, self.prompt.name)

    def _parts(self, reading: Reading) -> Iterator[Reading]:
        """The reading in pieces within the bounds, each with the turns that stand before it."""
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

    def _part(self, known: Sequence[Turn], start: int, end: int) -> Reading:
        return Reading(tuple(known[start:end]), tuple(known[max(0, start - self.before) : start]))

    def _request(self, part: Reading, ids: Mapping[str, str]) -> Request:
        lines = ["before:", *(_line(turn, "", BEFORE_CHARS) for turn in part.before)] if part.before else []
        lines += ["items:", *(_line(turn, ids[turn.note]) for turn in part.turns)]
        room = self._manner.tokens_over + len(part.turns) * self._manner.tokens_per_item
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(lines),
            schema=self._schema,
            max_tokens=room,
        )


def _line(turn: Turn, short: str, longest: int | None = None) -> str:
    passage = turn.passage
    text = passage.content if longest is None else clip(passage.content, longest)
    return line(id=short, by=passage.role, on=day(passage.occurred_at), title=passage.title, text=text)


def _summary(answer: str) -> str:
    """The summary in an answer, which may be cut or have something around it; "" if there is none that can be kept."""
    match = _SUMMARY.search(answer)
    if match is None:
        return ""
    try:
        summary = one_line(json.loads(match[1], strict=False))
    except ValueError:
        return ""
    return summary if len(summary) <= MAX_SUMMARY else ""
