"""Reranks with a language model, which sees all notes at once, each under a meaningless id.

Unknown ids in an answer are ignored. Notes that the answer does not name keep their order, after the others.

Listwise ranking by permutation, of the helpful notes only: Sun et al. 2023, "Is ChatGPT Good at Search? Investigating
Large Language Models as Re-Ranking Agents".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.core.bounded_gather import bounded_gather
from zettel.errors import InvalidInput, InvalidModelOutput, ModelError
from zettel.llm.answer_parsing import items
from zettel.llm.prompt_lines import card, clip, day, line, short_ids
from zettel.llm.schemas import TEXTS, object_schema
from zettel.model import from_micros
from zettel.ports.language_model import Request
from zettel.prompts import Prompt, load_prompt

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.ports.query import Floats, Question, Shortlist

READS = 20
"""Notes to rerank: about 1,300 tokens of a chat, in addition to 600 of the prompt."""
QUESTION_CHARS = 2_000
"""Longest question in the prompt; longer ones are cut."""
SHOWN_CHARS = 400
"""Longest note in the prompt."""
CONTEXT_CHARS = 140
"""Longest context of a note in the prompt: one sentence."""
TOKENS_PER_NOTE = 10
BASE_TOKENS = 50
"""Limit of an answer in tokens: for each note, and in addition."""

SCHEMA = object_schema({"order": TEXTS})
"""JSON schema of an answer."""


class LLMScorer:
    """Reranks the best ``reads`` notes with the memory's language model, in one call per search.

    An unusable answer or a spent budget leaves the order unchanged. Raises ``InvalidInput``.
    """

    name = "llm"
    wants_vectors = False

    def __init__(self, reads: int = READS) -> None:
        if reads < 1:
            raise InvalidInput(f"reads={reads} must be at least 1")
        self.reads = reads

    @cached_property
    def prompt(self) -> Prompt:
        return load_prompt("rank")

    async def rerank(
        self, questions: Sequence[Question], shortlists: Sequence[Shortlist]
    ) -> list[Floats | ModelError]:
        """Values by place in the model's order: 1 for the first note, 0 for notes that it does not name, (m,) each.

        Raises ``InvalidInput`` for a memory without a model.
        """
        return await bounded_gather([partial(self._order, *pair) for pair in zip(questions, shortlists, strict=True)])

    async def _order(self, question: Question, shortlist: Shortlist) -> Floats | ModelError:
        if shortlist.ask is None:
            raise InvalidInput("the scorer llm needs a language model: open the memory with llm=... or --llm")
        ids = short_ids(note.id for note in shortlist.notes)
        try:
            answer = await shortlist.ask(self._request(question, shortlist.notes, ids), list(ids))
            named = _named_places(items(answer.text, answer.cut), list(ids.values()))
        except ModelError as error:
            return error
        values = np.zeros(len(shortlist.notes), np.float32)
        values[named] = 1 - np.arange(len(named)) / len(values)
        return values

    def _request(self, question: Question, notes: Sequence[Note], ids: Mapping[str, str]) -> Request:
        today = None if question.today is None else from_micros(question.today)
        return Request(
            prompt=self.prompt.name,
            system=self.prompt.system,
            examples=self.prompt.examples,
            user="\n".join(
                [
                    "question:",
                    line(question=clip(question.text, QUESTION_CHARS), today=day(today)),
                    "notes:",
                    *(_line(note, ids[note.id]) for note in notes),
                ]
            ),
            schema=SCHEMA,
            max_tokens=BASE_TOKENS + len(notes) * TOKENS_PER_NOTE,
        )


def _line(note: Note, id: str) -> str:
    about = clip(note.context, CONTEXT_CHARS) if "context" in note.authored else ""
    return card(note, id, SHOWN_CHARS, about)


def _named_places(items: Iterable[Any], ids: Sequence[str]) -> list[int]:
    """The places of the notes that an answer names, in its order, each once. Raises ``InvalidModelOutput``."""
    answered: list[Any] = []
    for item in items:
        order = item.get("order") if isinstance(item, dict) else [item]
        answered += order if isinstance(order, list) else [order]
    place_of = {id: place for place, id in enumerate(ids)}
    places = dict.fromkeys(place_of[id] for id in answered if isinstance(id, str) and id in place_of)
    if answered and not places:
        raise InvalidModelOutput("the answer names none of the notes in the prompt")
    return list(places)
