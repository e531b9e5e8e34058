"""What a language model makes of older notes once newer ones have come: which to rewrite, which to link or unlink, and
why.

All notes of a question share one closed list, each under an id that says nothing. What an answer says of any other
note, without a reason, or of the same note twice, is dropped; so is a rewriting that loses what the note said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zettel.annotate.tokens import tokenize
from zettel.annotate.written import Fields
from zettel.errors import InvalidInput
from zettel.llm.answers import items
from zettel.llm.lines import Reason, date_of, line, short_ids, told
from zettel.llm.ports import Ask, Choice, Choices, Request, Retie, Rewrite, Rewrote
from zettel.model import Note
from zettel.prompts import Prompt, load_prompt

BATCH = 10
"""New notes asked about together."""
OFFERED = 4
"""Neighbours of a new note that are shown, strongest links first."""
SHOWN_CHARS = 300
"""Characters by which a note is told: what is not shown cannot be kept in a rewriting."""
SHOWN_KEYWORDS = 6
KEPT = 0.6
"""Share of its words that a context must keep when it is rewritten."""
TOKENS_PER_NOTE = 160
TOKENS_OVER = 150
"""Tokens that an answer may have: for each new note, and besides."""

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_CHANGE = {
    "type": "object",
    "properties": {
        "because": _TEXT,
        "card": _TEXT,
        "do": {"type": "string", "enum": ["rewrite", "link", "unlink"]},
        "why": _TEXT,
        "context": _TEXT,
        "keywords": _TEXTS,
        "tags": _TEXTS,
        "importance": {"type": "number"},
    },
    "required": ["because", "card", "do", "why"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"changes": {"type": "array", "items": _CHANGE}},
    "required": ["changes"],
    "additionalProperties": False,
}
"""What an answer looks like."""


class _Change(BaseModel):
    """One change of an answer, by short ids (weak models write those of digits alone as numbers); what it says of the
    note's fields is judged apart."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    because: str
    card: str
    do: Literal["rewrite", "link", "unlink"]
    why: Annotated[Reason, Field(min_length=1)]


class LiteLLMEvolver:
    """Has a model evolve notes. ``batch`` bounds the new notes of one question. Raises ``InvalidInput``."""

    def __init__(self, batch: int = BATCH) -> None:
        if batch < 1:
            raise InvalidInput(f"batch={batch}: at least 1 is needed")
        self.batch = batch
        self.offered = OFFERED

    @cached_property
    def prompt(self) -> Prompt:
        """What the model is told."""
        return load_prompt("evolve")

    async def evolve(self, choices: Choices, ask: Ask) -> Rewrote:
        """One question about all of the notes. Raises what ``ask`` raises, and ``ModelUnusable``."""
        own = {choice.note.id: choice.note for choice in choices.notes}
        pool = {note.id: note for note in choices.others}
        ids = short_ids([*own, *pool])
        answer = await ask(self._request(choices, ids), [*dict.fromkeys([*own, *pool])])
        changes = _changes(choices, ids, items(answer.text, answer.cut))
        return Rewrote(changes, answer.model, self.prompt.name)

    def _request(self, choices: Choices, ids: Mapping[str, str]) -> Request:
        own = {choice.note.id for choice in choices.notes}
        news = [_line(one.note, ids, near=[ids[note.id] for note in _near(one, choices)]) for one in choices.notes]
        cards = [_line(note, ids) for note in choices.others if note.id not in own]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["news:", *news, *(["cards:", *cards] if cards else [])]),
            schema=SCHEMA,
            max_tokens=TOKENS_OVER + len(news) * TOKENS_PER_NOTE,
        )


def _near(choice: Choice, choices: Choices) -> list[Note]:
    return [choices.others[place] for place in choice.others]


def _changes(choices: Choices, ids: Mapping[str, str], found: Iterable[Any]) -> tuple[Rewrite | Retie, ...]:
    """The valid changes of an answer: of each note and of each pair the first."""
    by_short = {short: id for id, short in ids.items()}
    near = {choice.note.id: {note.id: note for note in _near(choice, choices)} for choice in choices.notes}
    made: dict[tuple[str, ...], Rewrite | Retie] = {}
    for item in found:
        try:
            said = _Change.model_validate(item)
        except ValidationError:
            continue
        because = by_short.get(said.because.strip(), "")
        note = near.get(because, {}).get(by_short.get(said.card.strip(), ""))
        if note is None:
            continue
        if said.do == "rewrite":
            rewrite = _rewrite(note, because, said.why, item)
            if rewrite is not None:
                made.setdefault((note.id,), rewrite)
        else:
            made.setdefault((because, note.id), Retie(because, note.id, said.why, said.do == "link"))
    return tuple(made.values())


def _rewrite(note: Note, because: str, why: str, item: Mapping[str, Any]) -> Rewrite | None:
    try:
        written = Fields.model_validate(dict(item)).written()
    except ValidationError:
        return None
    said = set(tokenize(told(note, SHOWN_CHARS)))
    kept = said & set(tokenize(written.context))
    return Rewrite(note.id, because, why, written) if len(kept) >= KEPT * len(said) else None


def _line(note: Note, ids: Mapping[str, str], near: Iterable[str] = ()) -> str:
    keywords = list(note.keywords[:SHOWN_KEYWORDS])
    return line(id=ids[note.id], on=date_of(note), note=told(note, SHOWN_CHARS), keywords=keywords, near=list(near))
