"""Gather: a question that one search does not answer is searched for in rounds.

After each search a language model looks at what was found, and says what the question needs to know, which notes tell
it, and what is still to be searched for; that is searched for next. It ends when nothing is missing, when there is
nothing new to search for, or after the last round. What was found stays as evidence, with the round and the search that
found it. Whatever keeps the model from an answer ends it too: what was found by then is given.

Paper: "MemR3: Memory Retrieval via Reflective Reasoning for LLM Agents", 2025 (arXiv:2512.20237), which keeps evidence
and gaps in the same way and routes between retrieving, reflecting and answering; here one question to the model does
for the routing, and the answer is left to the caller.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from zettel.annotate.written import one_line
from zettel.errors import ModelError, ModelUnusable
from zettel.llm.answers import items
from zettel.llm.lines import card, clip, day, line, short_ids
from zettel.llm.ports import Ask, Request
from zettel.model import Frozen, Hit, Note
from zettel.prompts import load_prompt

SHOWN = 24
"""Notes that the model is shown at most: about 1,600 tokens of a chat, beside 900 of the prompt."""
SHOWN_FIRST = 12
"""Of the first search; the others leave room for what later ones find."""
SHOWN_LATER = 6
"""Of each later search."""
SHOWN_CHARS = 400
"""Characters of each."""
QUESTION_CHARS = 2_000
"""Characters of a question that are shown."""
NEEDS = 4
"""Things that a question may need to know: more are no plan but a list."""
MAX_SEARCH = 300
"""Characters of what a model wants to search for; a longer one is cut."""
ANSWER_TOKENS = 500
"""Tokens that an answer may have: four needs with their searches, in any language."""

_TEXT = {"type": "string"}
_NEED = {
    "type": "object",
    "properties": {"need": _TEXT, "cards": {"type": "array", "items": _TEXT}, "search": _TEXT},
    "required": ["need", "cards", "search"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"needs": {"type": "array", "items": _NEED}},
    "required": ["needs"],
    "additionalProperties": False,
}
"""What an answer looks like."""

Find = Callable[[Sequence[str]], Awaitable[list[list[Hit]]]]
"""The hits of each question, best first."""


class Evidence(Frozen):
    """A hit with the ``round`` (from 1 on) and the ``search`` that found it first; ``needed`` if the model said that it
    tells something that the question needs."""

    hit: Hit
    round: int
    search: str
    needed: bool = False


class Gathered(Frozen):
    """What was gathered for a question.

    ``text`` is packed for a prompt, ``evidence`` what it was packed from: what is needed, then the other hits, best
    first. ``missing`` is what the model still missed at the end, in its words. ``rounds`` of searches were made, and
    ``calls`` of the model that were not answered from before; ``ended`` says why it stopped.
    """

    text: str
    evidence: tuple[Evidence, ...]
    missing: tuple[str, ...] = ()
    rounds: int = 1
    calls: int = 0
    ended: str


class Need(NamedTuple):
    """What a question needs to know, the notes that tell it, and what to search for; "": nothing."""

    need: str
    notes: tuple[str, ...]
    search: str

    @property
    def is_missing(self) -> bool:
        return not self.notes or bool(self.search)


class _Round(NamedTuple):
    search: str
    number: int
    hits: list[Hit]


async def gather(
    question: str,
    rounds: int,
    find: Find,
    asker: Callable[[Sequence[Note]], Ask] | None,
    pack: Callable[[Sequence[Hit]], str],
    today: datetime | None = None,
) -> Gathered:
    """Search for a question in at most so many ``rounds``. ``asker`` is None where there is no model: then it is one.

    Raises what ``find`` raises, and ``InvalidInput`` of the model; its other errors end the rounds.
    """
    made: list[_Round] = []
    needs: list[Need] = []
    wanted, calls, ended = [question], 0, "no language model is there to say what is missing"
    for number in range(1, rounds + 1):
        made += [_Round(one, number, hits) for one, hits in zip(wanted, await find(wanted), strict=True)]
        if asker is None:
            break
        shown = _shown(made, needs)
        try:
            answer = await asker(shown)(_request(question, made, shown, today), [note.id for note in shown])
            calls += not answer.cached
            needs = _needs(items(answer.text, answer.cut), shown)
        except ModelError as error:
            calls += error.spent is not None
            ended = f"the language model could not say what is missing: {error}"
            break
        searched = {one.search.casefold() for one in made}
        new = {need.search.casefold(): need.search for need in reversed(needs) if need.search}
        wanted = [search for key, search in reversed(new.items()) if key not in searched]
        if not any(need.is_missing for need in needs):
            ended = "nothing is missing"
        elif not wanted:
            ended = "something is missing, and nothing else to search for"
        else:
            ended = f"something is missing after {number} rounds"
        if not wanted:
            break
    evidence = _evidence(made, needs)
    return Gathered(
        text=pack([one.hit for one in evidence]),
        evidence=evidence,
        missing=tuple(need.need for need in needs if need.is_missing),
        rounds=made[-1].number,
        calls=calls,
        ended=ended,
    )


def _evidence(made: Sequence[_Round], needs: Sequence[Need]) -> tuple[Evidence, ...]:
    """Each note once: what is needed first, then the best of each search, then the second best, and so on."""
    needed = {id for need in needs for id in need.notes}
    first: dict[str, Evidence] = {}
    for one in made:
        for hit in one.hits:
            id = hit.note.id
            first.setdefault(id, Evidence(hit=hit, round=one.number, search=one.search, needed=id in needed))
    in_turn: dict[str, None] = {}
    for place in range(max((len(one.hits) for one in made), default=0)):
        in_turn.update({one.hits[place].note.id: None for one in made if place < len(one.hits)})
    return tuple(first[id] for id in sorted(in_turn, key=lambda id: not first[id].needed))


def _shown(made: Sequence[_Round], needs: Sequence[Need]) -> list[Note]:
    """The notes that a model looks at: those it took as evidence, then the best of the newest searches."""
    notes = {hit.note.id: hit.note for one in made for hit in one.hits}
    wanted = [id for need in needs for id in need.notes]
    for one in reversed(made):
        most = SHOWN_FIRST if one.number == 1 else SHOWN_LATER
        wanted += [hit.note.id for hit in one.hits[:most]]
    return [notes[id] for id in list(dict.fromkeys(wanted))[:SHOWN]]


def _request(question: str, made: Sequence[_Round], shown: Sequence[Note], today: datetime | None) -> Request:
    prompt = load_prompt("gather")
    ids = short_ids(note.id for note in shown)
    searched = [clip(one.search, QUESTION_CHARS) for one in made]
    return Request(
        prompt=prompt.name,
        system=prompt.system,
        examples=prompt.examples,
        user="\n".join(
            [
                "to answer:",
                line(question=clip(question, QUESTION_CHARS), today=day(today)),
                "searched:",
                json.dumps(searched, ensure_ascii=False, separators=(",", ":")),
                "cards:",
                *(card(note, ids[note.id], SHOWN_CHARS) for note in shown),
            ]
        ),
        schema=SCHEMA,
        max_tokens=ANSWER_TOKENS,
    )


def _needs(found: Sequence[Any], shown: Sequence[Note]) -> list[Need]:
    """What an answer says is needed, as far as it can be used. Raises ``ModelUnusable`` if nothing of it can."""
    ids = {short: id for id, short in short_ids(note.id for note in shown).items()}
    needs: list[Need] = []
    for item in found[:NEEDS]:
        if not isinstance(item, dict) or not isinstance(item.get("need"), str) or not item["need"].strip():
            continue
        need, cards, search = item["need"], item.get("cards"), item.get("search")
        told = cards if isinstance(cards, list) else []
        notes = dict.fromkeys(ids[card] for card in told if isinstance(card, str) and card in ids)
        wanted = clip(one_line(search), MAX_SEARCH) if isinstance(search, str) else ""
        needs.append(Need(clip(one_line(need), MAX_SEARCH), tuple(notes), wanted))
    if found and not needs:
        raise ModelUnusable("the answer names nothing that the question needs")
    return needs
