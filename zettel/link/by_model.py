"""The linker that calls a language model: typed links, with reasons, from new notes to a few older ones.

All notes of a request share one list of candidates, each with a short id. A pair is shown as a link from its later to
its earlier note, which may have arrived in the other order. Other links of an answer are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zettel.errors import InvalidInput, InvalidModelOutput
from zettel.link.fact_changes import in_time
from zettel.link.near import MAX_NEAR_LINKS
from zettel.llm.answer_parsing import items
from zettel.llm.prompt_lines import Reason, date_of, line, short_ids, summary
from zettel.llm.schemas import TEXT, enum_schema, list_schema
from zettel.model import LinkType, Note
from zettel.ports.language_model import (
    Ask,
    CandidateBatch,
    InvalidItem,
    LinkDecision,
    LinkResult,
    NoteCandidates,
    Request,
)
from zettel.prompts import Prompt, load_prompt

BATCH = 30
"""Notes per request."""
SHOWN_CHARS = 140
"""Characters of a note in a request: its context, which is one sentence."""
MAX_OFFERED = 4
"""Candidates per note, the first ones: they are most of the cost of a link request."""
MAX_LINKS = MAX_NEAR_LINKS
DECIDABLE = (LinkType.RELATES, LinkType.SUPERSEDES, LinkType.UPDATES, LinkType.CONTRADICTS)
"""The link types that a model may decide; the others are known without a model."""
TOKENS_PER_NOTE = 120
EXTRA_TOKENS = 150
"""Tokens that an answer may have: per note, and for the rest."""
UNREADABLE = InvalidItem("the model's answer cannot be read")
CUT = InvalidItem("the model's answer was cut off before this note")

SCHEMA = list_schema(
    "links", {"from": TEXT, "to": TEXT, "type": enum_schema([type.value for type in DECIDABLE]), "reason": TEXT}
)
"""The JSON schema of an answer."""


class _Item(BaseModel):
    """One link of an answer, by short ids; weak models write ids of digits as numbers."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    source: Annotated[str, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    type: LinkType
    reason: Reason = ""


class LiteLLMLinker:
    """Decides links by a model. ``batch`` limits the notes of one request. Raises ``InvalidInput``."""

    def __init__(self, batch: int = BATCH) -> None:
        if batch < 1:
            raise InvalidInput(f"batch must be at least 1, got {batch}")
        self.batch = batch
        self.offered = MAX_OFFERED

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt."""
        return load_prompt("link")

    async def link(self, choices: CandidateBatch, ask: Ask) -> LinkResult:
        """Send one request about all notes that have candidates. Raises what ``ask`` raises."""
        asked = [choice for choice in choices.notes if _offered(choice, choices)]
        if not asked:
            return LinkResult(((),) * len(choices.notes))
        pool = {id: note for choice in asked for id, note in _offered(choice, choices).items()}
        own = {choice.note.id: choice.note for choice in asked}
        ids = short_ids([*own, *pool])
        answer = await ask(self._request(asked, choices, ids), [*dict.fromkeys([*own, *pool])])
        try:
            found = items(answer.text, answer.cut)
        except InvalidModelOutput:
            return LinkResult(tuple(UNREADABLE if choice.note.id in own else () for choice in choices.notes))
        decided = _decided(choices, ids, found)
        return LinkResult(
            tuple(
                CUT if answer.cut and choice.note.id in own and not decided[choice.note.id] else decided[choice.note.id]
                for choice in choices.notes
            ),
            answer.model,
            self.prompt.name,
        )

    def _request(self, asked: Iterable[NoteCandidates], choices: CandidateBatch, ids: Mapping[str, str]) -> Request:
        to: dict[str, list[str]] = {}
        cards: dict[str, Note] = {}
        for choice in asked:
            to.setdefault(choice.note.id, [])
            for later, earlier in _pairs(choice, choices):
                cards |= {later.id: later, earlier.id: earlier}
                to.setdefault(later.id, []).append(ids[earlier.id])
        notes = [_line(cards[id], ids, targets) for id, targets in to.items() if targets]
        others = [_line(note, ids) for id, note in cards.items() if not to.get(id)]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["notes:", *notes, *(["others:", *others] if others else [])]),
            schema=SCHEMA,
            max_tokens=EXTRA_TOKENS + len(notes) * TOKENS_PER_NOTE,
        )


def _offered(choice: NoteCandidates, choices: CandidateBatch) -> dict[str, Note]:
    """Return by id the notes that this one may be linked to."""
    others = [choices.others[place] for place in choice.others[:MAX_OFFERED]]
    return {other.id: other for other in others if other.id != choice.note.id}


def _pairs(choice: NoteCandidates, choices: CandidateBatch) -> list[tuple[Note, Note]]:
    """Return the pairs of a note and its candidates, each with the later note first."""
    ordered = (in_time(other, choice.note) for other in _offered(choice, choices).values())
    return [(later, earlier) for earlier, later, _ in ordered]


def _decided(
    choices: CandidateBatch, ids: Mapping[str, str], found: Iterable[Any]
) -> dict[str, tuple[LinkDecision, ...]]:
    """Return by note the links of an answer between it and its candidates: one per pair, and a few per note."""
    by_short = {short: id for id, short in ids.items()}
    asked: dict[tuple[str, str], str] = {}
    for choice in choices.notes:
        for later, earlier in _pairs(choice, choices):
            asked.setdefault((later.id, earlier.id), choice.note.id)
    decided: dict[str, dict[tuple[str, str], LinkDecision]] = {choice.note.id: {} for choice in choices.notes}
    for item in found:
        link = _item(item)
        pair = (by_short.get(link.source, ""), by_short.get(link.target, "")) if link else ("", "")
        if link is None or pair not in asked:
            continue
        links = decided[asked[pair]]
        if len(links) < MAX_LINKS:
            links.setdefault(pair, LinkDecision(*pair, link.type, link.reason))
    return {id: tuple(links.values()) for id, links in decided.items()}


def _item(item: Any) -> _Item | None:
    try:
        link = _Item.model_validate(item)
    except ValidationError:
        return None
    return link if link.type in DECIDABLE else None


def _line(note: Note, ids: Mapping[str, str], to: Iterable[str] = ()) -> str:
    return line(id=ids[note.id], on=date_of(note), note=summary(note, SHOWN_CHARS), to=list(to))
