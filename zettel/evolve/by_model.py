"""The evolver that calls a language model: new notes rewrite, link or unlink older ones, with reasons.

All notes of a request share one list, each with a short id. Changes of other notes, changes without a reason, second
changes of a note, and rewrites that lose the words of the note are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zettel.errors import InvalidInput
from zettel.llm.answer_parsing import items
from zettel.llm.note_fields import Fields
from zettel.llm.prompt_lines import Reason, date_of, line, short_ids, summary
from zettel.llm.schemas import NUMBER, TEXT, TEXTS, enum_schema, list_schema
from zettel.model import Note
from zettel.ports.language_model import (
    Ask,
    CandidateBatch,
    EvolutionResult,
    LinkChange,
    NoteCandidates,
    Request,
    Rewrite,
)
from zettel.prompts import Prompt, load_prompt
from zettel.text.tokens import tokenize

BATCH = 10
"""New notes per request."""
OFFERED = 4
"""Neighbours per new note, strongest links first."""
SHOWN_CHARS = 300
"""Characters of a note in a request; a rewrite cannot keep the rest."""
SHOWN_KEYWORDS = 6
KEPT = 0.6
"""The share of its words that a rewritten context must keep."""
TOKENS_PER_NOTE = 160
EXTRA_TOKENS = 150
"""Tokens that an answer may have: per new note, and for the rest."""

SCHEMA = list_schema(
    "changes",
    {
        "because": TEXT, "card": TEXT, "do": enum_schema(["rewrite", "link", "unlink"]), "why": TEXT, "context": TEXT,
        "keywords": TEXTS, "tags": TEXTS, "importance": NUMBER,
    },
    required=["because", "card", "do", "why"],
)  # fmt: skip
"""The JSON schema of an answer."""


class _Change(BaseModel):
    """One change of an answer, by short ids; weak models write ids of digits as numbers. Fields are validated later."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    because: str
    card: str
    do: Literal["rewrite", "link", "unlink"]
    why: Annotated[Reason, Field(min_length=1)]


class LiteLLMEvolver:
    """Evolves notes by a model. ``batch`` limits the new notes of one request. Raises ``InvalidInput``."""

    def __init__(self, batch: int = BATCH) -> None:
        if batch < 1:
            raise InvalidInput(f"batch must be at least 1, got {batch}")
        self.batch = batch
        self.offered = OFFERED

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt."""
        return load_prompt("evolve")

    async def evolve(self, choices: CandidateBatch, ask: Ask) -> EvolutionResult:
        """Send one request about all notes. Raises what ``ask`` raises, and ``InvalidModelOutput``."""
        own = {choice.note.id: choice.note for choice in choices.notes}
        pool = {note.id: note for note in choices.others}
        ids = short_ids([*own, *pool])
        answer = await ask(self._request(choices, ids), [*dict.fromkeys([*own, *pool])])
        changes = _changes(choices, ids, items(answer.text, answer.cut))
        return EvolutionResult(changes, answer.model, self.prompt.name)

    def _request(self, choices: CandidateBatch, ids: Mapping[str, str]) -> Request:
        own = {choice.note.id for choice in choices.notes}
        news = [_line(one.note, ids, near=[ids[note.id] for note in _near(one, choices)]) for one in choices.notes]
        cards = [_line(note, ids) for note in choices.others if note.id not in own]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["news:", *news, *(["cards:", *cards] if cards else [])]),
            schema=SCHEMA,
            max_tokens=EXTRA_TOKENS + len(news) * TOKENS_PER_NOTE,
        )


def _near(choice: NoteCandidates, choices: CandidateBatch) -> list[Note]:
    return [choices.others[place] for place in choice.others]


def _changes(choices: CandidateBatch, ids: Mapping[str, str], found: Iterable[Any]) -> tuple[Rewrite | LinkChange, ...]:
    """Return the valid changes of an answer: the first of each note and of each pair."""
    by_short = {short: id for id, short in ids.items()}
    near = {choice.note.id: {note.id: note for note in _near(choice, choices)} for choice in choices.notes}
    made: dict[tuple[str, ...], Rewrite | LinkChange] = {}
    for item in found:
        try:
            change = _Change.model_validate(item)
        except ValidationError:
            continue
        because = by_short.get(change.because.strip(), "")
        note = near.get(because, {}).get(by_short.get(change.card.strip(), ""))
        if note is None:
            continue
        if change.do == "rewrite":
            rewrite = _rewrite(note, because, change.why, item)
            if rewrite is not None:
                made.setdefault((note.id,), rewrite)
        else:
            made.setdefault((because, note.id), LinkChange(because, note.id, change.why, change.do == "link"))
    return tuple(made.values())


def _rewrite(note: Note, because: str, why: str, item: Mapping[str, Any]) -> Rewrite | None:
    try:
        written = Fields.model_validate(dict(item)).annotation()
    except ValidationError:
        return None
    words = set(tokenize(summary(note, SHOWN_CHARS)))
    kept = words & set(tokenize(written.context))
    return Rewrite(note.id, because, why, written) if len(kept) >= KEPT * len(words) else None


def _line(note: Note, ids: Mapping[str, str], near: Iterable[str] = ()) -> str:
    keywords = list(note.keywords[:SHOWN_KEYWORDS])
    return line(id=ids[note.id], on=date_of(note), note=summary(note, SHOWN_CHARS), keywords=keywords, near=list(near))
