"""Links that a language model decides on: which of a few older notes a new one belongs with, how, and why.

All notes of a question share one closed list of candidates, each under an id that says nothing. What an answer names
beyond what was offered is dropped, and so is a replacement of a newer note by an older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zettel.errors import InvalidInput, ModelUnusable
from zettel.link.near import MAX_NEAR_LINKS
from zettel.llm.answers import items
from zettel.llm.lines import Reason, date_of, line, short_ids, told
from zettel.llm.ports import Ask, Choice, Choices, Decision, Flaw, Linked, Request
from zettel.model import LinkType, Note
from zettel.prompts import Prompt, load_prompt

BATCH = 30
"""Notes asked about together."""
SHOWN_CHARS = 140
"""Characters by which a note is told: its context, which is one sentence."""
MAX_OFFERED = 4
"""Candidates of a note that are shown, the first ones: they are most of what a question about links costs."""
MAX_LINKS = MAX_NEAR_LINKS
DECIDABLE = (LinkType.RELATES, LinkType.SUPERSEDES, LinkType.CONTRADICTS)
"""What a model may decide: that a text names another, or was made from it, is known without."""
TOKENS_PER_NOTE = 120
TOKENS_OVER = 150
"""Tokens that an answer may have: for each note, and besides."""
UNREADABLE = Flaw("the model's answer cannot be read")
CUT = Flaw("the model's answer was cut off before this note")

_TEXT = {"type": "string"}
_LINK = {
    "type": "object",
    "properties": {
        "from": _TEXT,
        "to": _TEXT,
        "type": {"type": "string", "enum": [type.value for type in DECIDABLE]},
        "reason": _TEXT,
    },
    "required": ["from", "to", "type", "reason"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"links": {"type": "array", "items": _LINK}},
    "required": ["links"],
    "additionalProperties": False,
}
"""What an answer looks like."""


class _Item(BaseModel):
    """One link of an answer, by short ids; weak models write those of digits alone as numbers."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    source: Annotated[str, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    type: LinkType
    reason: Reason = ""


class LiteLLMLinker:
    """Has a model decide links. ``batch`` bounds the notes of one question. Raises ``InvalidInput``."""

    def __init__(self, batch: int = BATCH) -> None:
        if batch < 1:
            raise InvalidInput(f"batch={batch}: at least 1 is needed")
        self.batch = batch
        self.offered = MAX_OFFERED

    @cached_property
    def prompt(self) -> Prompt:
        """What the model is told."""
        return load_prompt("link")

    async def link(self, choices: Choices, ask: Ask) -> Linked:
        """One question about all of the notes that have a choice. Raises what ``ask`` raises."""
        asked = [choice for choice in choices.notes if _offered(choice, choices)]
        if not asked:
            return Linked(((),) * len(choices.notes))
        pool = {id: note for choice in asked for id, note in _offered(choice, choices).items()}
        own = {choice.note.id: choice.note for choice in asked}
        ids = short_ids([*own, *pool])
        answer = await ask(self._request(asked, choices, ids), [*dict.fromkeys([*own, *pool])])
        try:
            found = items(answer.text, answer.cut)
        except ModelUnusable:
            return Linked(tuple(UNREADABLE if choice.note.id in own else () for choice in choices.notes))
        decided = _decided(choices, ids, found)
        return Linked(
            tuple(
                CUT if answer.cut and choice.note.id in own and not decided[choice.note.id] else decided[choice.note.id]
                for choice in choices.notes
            ),
            answer.model,
            self.prompt.name,
        )

    def _request(self, asked: Iterable[Choice], choices: Choices, ids: Mapping[str, str]) -> Request:
        notes: list[str] = []
        own: set[str] = set()
        pool: dict[str, Note] = {}
        for choice in asked:
            offered = _offered(choice, choices)
            notes.append(_line(choice.note, ids, [ids[id] for id in offered]))
            own.add(choice.note.id)
            pool.update(offered)
        others = [_line(note, ids) for id, note in pool.items() if id not in own]
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(["notes:", *notes, *(["others:", *others] if others else [])]),
            schema=SCHEMA,
            max_tokens=TOKENS_OVER + len(notes) * TOKENS_PER_NOTE,
        )


def _offered(choice: Choice, choices: Choices) -> dict[str, Note]:
    """By id, the notes that this one may be linked to."""
    others = [choices.others[place] for place in choice.others[:MAX_OFFERED]]
    return {other.id: other for other in others if other.id != choice.note.id}


def _decided(choices: Choices, ids: Mapping[str, str], found: Iterable[Any]) -> dict[str, tuple[Decision, ...]]:
    """By note, the links of an answer that are among its choices: the first of a pair, and the first few of a note."""
    by_short = {short: id for id, short in ids.items()}
    by_id = {choice.note.id: choice for choice in choices.notes}
    decided: dict[str, dict[str, Decision]] = {id: {} for id in by_id}
    for item in found:
        link = _item(item)
        choice = by_id.get(by_short.get(link.source, "")) if link else None
        if link is None or choice is None:
            continue
        target = _offered(choice, choices).get(by_short.get(link.target, ""))
        links = decided[choice.note.id]
        if target is None or target.id in links or len(links) == MAX_LINKS:
            continue
        if link.type is not LinkType.SUPERSEDES or _is_older(target, choice.note):
            links[target.id] = Decision(choice.note.id, target.id, link.type, link.reason)
    return {id: tuple(links.values()) for id, links in decided.items()}


def _item(item: Any) -> _Item | None:
    try:
        link = _Item.model_validate(item)
    except ValidationError:
        return None
    return link if link.type in DECIDABLE else None


def _is_older(other: Note, note: Note) -> bool:
    """Whether ``other`` held before: by when they are valid from where both say so, else by arrival."""
    if other.valid_from and note.valid_from and other.valid_from != note.valid_from:
        return other.valid_from < note.valid_from
    return other.seq < note.seq


def _line(note: Note, ids: Mapping[str, str], to: Iterable[str] = ()) -> str:
    return line(id=ids[note.id], on=date_of(note), note=told(note, SHOWN_CHARS), to=list(to))
