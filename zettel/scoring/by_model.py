"""The best notes put in order by a language model, which sees all of them at once, each under an id that says nothing.

What an answer names beyond what was shown is dropped; notes that it does not name keep their order, after the others.

Paper: Sun et al. 2023, "Is ChatGPT Good at Search? Investigating Large Language Models as Re-Ranking Agents" (listwise
ranking by permutation; here of the notes that help alone).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.errors import InvalidInput, ModelError, ModelUnusable
from zettel.llm.answers import items
from zettel.llm.lines import card, clip, day, line, short_ids
from zettel.llm.ports import Request
from zettel.model import from_micros
from zettel.prompts import Prompt, load_prompt
from zettel.together import together

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.query import Floats, Question, Shortlist

READS = 20
"""Best notes that are shown: about 1,300 tokens of a chat, beside 600 of the prompt."""
QUESTION_CHARS = 2_000
"""Characters of a question that are shown."""
SHOWN_CHARS = 400
"""Characters of a note that are shown."""
CONTEXT_CHARS = 140
"""Characters of what was written about it, which is one sentence."""
TOKENS_PER_NOTE = 10
TOKENS_OVER = 50
"""Tokens that an answer may have: for each note, and besides."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"order": {"type": "array", "items": {"type": "string"}}},
    "required": ["order"],
    "additionalProperties": False,
}
"""What an answer looks like."""


class LLMScorer:
    """Has the memory's language model order the best ``reads`` notes anew, by one question for each search.

    Where the model gives no answer that can be used, or the budget is spent, the order stays as it was. Raises
    ``InvalidInput``.
    """

    name = "llm"
    wants_vectors = False

    def __init__(self, reads: int = READS) -> None:
        if reads < 1:
            raise InvalidInput(f"reads={reads}: at least 1 is needed")
        self.reads = reads

    @cached_property
    def prompt(self) -> Prompt:
        """What the model is told."""
        return load_prompt("rank")

    async def rerank(
        self, questions: Sequence[Question], shortlists: Sequence[Shortlist]
    ) -> list[Floats | ModelError]:
        """By place in the model's order: from 1 for the first on down, 0 for notes that it does not name, (m,) each.

        Raises ``InvalidInput`` for a memory without a model.
        """
        return await together([partial(self._order, *one) for one in zip(questions, shortlists, strict=True)])

    async def _order(self, question: Question, shown: Shortlist) -> Floats | ModelError:
        if shown.ask is None:
            raise InvalidInput("the scorer llm needs a language model: open the memory with llm=... or --llm")
        ids = short_ids(note.id for note in shown.notes)
        try:
            answer = await shown.ask(self._request(question, shown.notes, ids), list(ids))
            named = _named(items(answer.text, answer.cut), list(ids.values()))
        except ModelError as error:
            return error
        values = np.zeros(len(shown.notes), np.float32)
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
            max_tokens=TOKENS_OVER + len(notes) * TOKENS_PER_NOTE,
        )


def _line(note: Note, id: str) -> str:
    about = clip(note.context, CONTEXT_CHARS) if "context" in note.authored else ""
    return card(note, id, SHOWN_CHARS, about)


def _named(found: Iterable[Any], ids: Sequence[str]) -> list[int]:
    """The places of the notes that an answer names, in its order, each once. Raises ``ModelUnusable``."""
    told: list[Any] = []
    for item in found:
        listed = item.get("order") if isinstance(item, dict) else [item]
        told += listed if isinstance(listed, list) else [listed]
    known = {id: place for place, id in enumerate(ids)}
    named = dict.fromkeys(known[id] for id in told if isinstance(id, str) and id in known)
    if told and not named:
        raise ModelUnusable("the answer names none of the notes that were shown")
    return list(named)
