"""The evolver that calls a language model: new notes rewrite, link or unlink older ones, with reasons.

All notes of a request share one list, each with a short id. The evolver drops changes of notes outside the request,
changes without a reason, second changes of a note, and rewrites that lose too many words of the note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zettel.errors import InvalidInput
from zettel.llm.answer_parsing import items as parse_items
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
"""Neighbours per new note, those with the strongest links."""
SHOWN_CHARS = 300
"""Characters of a note in a request; a rewrite loses the rest."""
SHOWN_KEYWORDS = 6
MIN_OVERLAP = 0.6
"""The share of the note's words that a rewritten context must contain."""
TOKENS_PER_NOTE = 160
EXTRA_TOKENS = 150
"""The token limit of an answer: per new note, and in addition."""

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
    """One change, by short ids. Weak models write ids of digits as numbers. ``Fields`` validates the rest."""

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
        others = {note.id: note for note in choices.others}
        ids = short_ids([*own, *others])
        answer = await ask(self._request(choices, ids), [*dict.fromkeys([*own, *others])])
        changes = _changes(choices, ids, parse_items(answer.text, answer.cut))
        return EvolutionResult(changes, answer.model, self.prompt.name)

    def _request(self, choices: CandidateBatch, ids: Mapping[str, str]) -> Request:
        own = {choice.note.id for choice in choices.notes}
        new = [_line(new.note, ids, near=[ids[note.id] for note in _near(new, choices)]) for new in choices.notes]
        cards = [_line(note, ids) for note in choices.others if note.id not in own]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["news:", *new, *(["cards:", *cards] if cards else [])]),
            schema=SCHEMA,
            max_tokens=EXTRA_TOKENS + len(new) * TOKENS_PER_NOTE,
        )


def _near(choice: NoteCandidates, choices: CandidateBatch) -> list[Note]:
    return [choices.others[position] for position in choice.others]


def _changes(choices: CandidateBatch, ids: Mapping[str, str], items: Iterable[Any]) -> tuple[Rewrite | LinkChange, ...]:
    """Return the valid changes of an answer: the first of each note and of each pair."""
    by_short = {short: id for id, short in ids.items()}
    near = {choice.note.id: {note.id: note for note in _near(choice, choices)} for choice in choices.notes}
    changes: dict[tuple[str, ...], Rewrite | LinkChange] = {}
    for item in items:
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
                changes.setdefault((note.id,), rewrite)
        else:
            changes.setdefault((because, note.id), LinkChange(because, note.id, change.why, change.do == "link"))
    return tuple(changes.values())


def _rewrite(note: Note, because: str, why: str, item: Mapping[str, Any]) -> Rewrite | None:
    try:
        written = Fields.model_validate(dict(item)).annotation()
    except ValidationError:
        return None
    words = set(tokenize(summary(note, SHOWN_CHARS)))
    shared = words & set(tokenize(written.context))
    return Rewrite(note.id, because, why, written) if len(shared) >= MIN_OVERLAP * len(words) else None


def _line(note: Note, ids: Mapping[str, str], near: Iterable[str] = ()) -> str:
    keywords = list(note.keywords[:SHOWN_KEYWORDS])
    return line(id=ids[note.id], on=date_of(note), note=summary(note, SHOWN_CHARS), keywords=keywords, near=list(near))
