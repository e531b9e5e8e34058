"""Searches in rounds for a question that one search does not answer.

After each round a language model lists the facts that the question needs, the notes that contain them, and searches for
the missing ones. The next round runs these searches. It ends when nothing is missing, there is no new search, the
rounds are used up, or the model fails. All hits so far are the evidence, each with its round and search.

"MemR3: Memory Retrieval via Reflective Reasoning for LLM Agents", 2025 (arXiv:2512.20237), tracks evidence and gaps in
the same way. It also lets the model route between retrieving, reflecting and answering; here the caller answers.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from zettel.errors import InvalidModelOutput, ModelError
from zettel.llm.answer_parsing import items
from zettel.llm.note_fields import one_line
from zettel.llm.prompt_lines import card, clip, day, line, short_ids
from zettel.llm.schemas import TEXT, TEXTS, list_schema
from zettel.model import Frozen, Hit, Note
from zettel.ports.language_model import Ask, Request
from zettel.prompts import load_prompt

SHOWN = 24
"""Most notes in a prompt: about 1,600 tokens of a chat, in addition to 900 of the prompt."""
SHOWN_FIRST = 12
"""Notes of the first search in a prompt. It leaves space for later searches."""
SHOWN_LATER = 6
"""Notes of each later search in a prompt."""
SHOWN_CHARS = 400
"""Longest note in a prompt; longer ones are cut."""
QUESTION_CHARS = 2_000
"""Longest question in a prompt."""
NEEDS = 4
"""Most needs of a question."""
MAX_SEARCH = 300
"""Longest need or search of a model; longer ones are cut."""
ANSWER_TOKENS = 500
"""Limit of an answer: four needs with their searches, in any language."""

SCHEMA = list_schema("needs", {"need": TEXT, "cards": TEXTS, "search": TEXT})
"""JSON schema of an answer."""

Find = Callable[[Sequence[str]], Awaitable[list[list[Hit]]]]
"""The hits of each question, best first."""


class Evidence(Frozen):
    """A hit with the ``round`` (from 1) and the ``search`` that returned it first; ``needed``: the model listed it."""

    hit: Hit
    round: int
    search: str
    needed: bool = False


class Gathered(Frozen):
    """Evidence for a question.

    ``text``: the evidence, packed for a prompt. ``evidence``: needed hits, then the others, best first. ``missing``:
    what the model still missed, in its words. ``rounds``: rounds of searches. ``calls``: calls of the model that were
    not cached. ``ended``: why the search ended.
    """

    text: str
    evidence: tuple[Evidence, ...]
    missing: tuple[str, ...] = ()
    rounds: int = 1
    calls: int = 0
    ended: str


class Need(NamedTuple):
    """A fact that the question needs, the notes that contain it, and a search for it, or ""."""

    need: str
    notes: tuple[str, ...]
    search: str

    @property
    def is_missing(self) -> bool:
        return not self.notes or bool(self.search)


class _Search(NamedTuple):
    text: str
    round: int
    hits: list[Hit]


async def gather(
    question: str,
    rounds: int,
    find: Find,
    asker: Callable[[Sequence[Note]], Ask] | None,
    pack: Callable[[Sequence[Hit]], str],
    today: datetime | None = None,
) -> Gathered:
    """Search for a question in at most so many ``rounds``; in one round without a model (``asker`` None).

    Raises the errors of ``find``, and ``InvalidInput`` of the model. Other errors of the model end the search.
    """
    done: list[_Search] = []
    seen: dict[str, Note] = {}  # the searches in a prompt quote the model, which may have copied these
    needs: list[Need] = []
    new, calls, ended = [question], 0, "no language model to check what is missing"
    for number in range(1, rounds + 1):
        done += [_Search(text, number, hits) for text, hits in zip(new, await find(new), strict=True)]
        if asker is None:
            break
        shown = _shown(done, needs)
        try:
            seen.update({note.id: note for note in shown})
            answer = await asker([*seen.values()])(_request(question, done, shown, today), [*seen])
            calls += not answer.cached
            needs = _needs(items(answer.text, answer.cut), shown)
        except ModelError as error:
            calls += error.spent is not None
            ended = f"the language model failed: {error}"
            break
        searched = {search.text.casefold() for search in done}
        searches = {need.search.casefold(): need.search for need in reversed(needs) if need.search}
        new = [search for key, search in reversed(searches.items()) if key not in searched]
        if not any(need.is_missing for need in needs):
            ended = "nothing is missing"
        elif not new:
            ended = "something is missing, and there is no new search"
        else:
            ended = f"something is missing after {number} rounds"
        if not new:
            break
    evidence = _evidence(done, needs)
    return Gathered(
        text=pack([item.hit for item in evidence]),
        evidence=evidence,
        missing=tuple(need.need for need in needs if need.is_missing),
        rounds=done[-1].round,
        calls=calls,
        ended=ended,
    )


def _evidence(searches: Sequence[_Search], needs: Sequence[Need]) -> tuple[Evidence, ...]:
    """Each note once: needed notes, then the best hits of all searches, then the second best, and so on."""
    needed = {id for need in needs for id in need.notes}
    evidence: dict[str, Evidence] = {}
    for search in searches:
        for hit in search.hits:
            id = hit.note.id
            evidence.setdefault(id, Evidence(hit=hit, round=search.round, search=search.text, needed=id in needed))
    ranks = zip_longest(*(search.hits for search in searches))
    ids = dict.fromkeys(hit.note.id for rank in ranks for hit in rank if hit is not None)
    return tuple(evidence[id] for id in sorted(ids, key=lambda id: not evidence[id].needed))


def _shown(searches: Sequence[_Search], needs: Sequence[Need]) -> list[Note]:
    """The notes of the next prompt: the needed ones, then the best of the newest searches."""
    notes = {hit.note.id: hit.note for search in searches for hit in search.hits}
    ids = [id for need in needs for id in need.notes]
    for search in reversed(searches):
        most = SHOWN_FIRST if search.round == 1 else SHOWN_LATER
        ids += [hit.note.id for hit in search.hits[:most]]
    return [notes[id] for id in list(dict.fromkeys(ids))[:SHOWN]]


def _request(question: str, searches: Sequence[_Search], shown: Sequence[Note], today: datetime | None) -> Request:
    prompt = load_prompt("gather")
    ids = short_ids(note.id for note in shown)
    searched = [clip(search.text, QUESTION_CHARS) for search in searches]
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


def _needs(items: Sequence[Any], shown: Sequence[Note]) -> list[Need]:
    """The valid needs of an answer. Raises ``InvalidModelOutput`` if none is valid."""
    ids = {short: id for id, short in short_ids(note.id for note in shown).items()}
    needs: list[Need] = []
    for item in items[:NEEDS]:
        if not isinstance(item, dict) or not isinstance(item.get("need"), str) or not item["need"].strip():
            continue
        need, cards, search = item["need"], item.get("cards"), item.get("search")
        listed = cards if isinstance(cards, list) else []
        notes = dict.fromkeys(ids[card] for card in listed if isinstance(card, str) and card in ids)
        text = clip(one_line(search), MAX_SEARCH) if isinstance(search, str) else ""
        needs.append(Need(clip(one_line(need), MAX_SEARCH), tuple(notes), text))
    if items and not needs:
        raise InvalidModelOutput("the answer contains no valid need")
    return needs
