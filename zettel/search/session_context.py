"""The short-term memory of a conversation: its last turns verbatim, after a summary of the turns before.

Paper: Packer et al. 2023, "MemGPT: Towards LLMs as Operating Systems" (arXiv:2310.08560): a queue of the last messages,
with a recursive summary of those that left it. The summary here quotes sentences, so it needs no model and invents
nothing. It is chosen again for each call, so a deleted or archived turn leaves it at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import time
from typing import NamedTuple

from zettel.core.authority import is_on_probation
from zettel.core.present import present_micros
from zettel.llm.prompt_lines import clip
from zettel.model import EventRecord, Kind, Note, event_text
from zettel.ports.expiry import expired
from zettel.search.pack import SPEAKER_CHARS, WARNING, cut, estimate_tokens
from zettel.text.extraction import asks, sentences
from zettel.text.facts import states_fact
from zettel.text.filler import is_filler
from zettel.text.keywords import find_terms
from zettel.text.tokens import tokenize

SUMMARY_SHARE = 0.3
"""Share of the tokens for the summary, if the session does not fit without one."""
READ_TURNS = 500
"""The latest turns of a session that are read. Earlier ones are in the memory, but not in the short-term memory."""
SUMMARY, LAST_TURNS = "## Earlier in this session", "## Last turns"
MAX_QUOTED = 160
"""Characters of a quoted sentence; longer ones are cut."""
MIN_WORDS = 4
"""Fewest words of a quoted sentence."""
COVERED_WEIGHT = 0.2
"""Share of a word's weight after another quoted sentence contains it."""
ANSWER_WEIGHT = 0.5
"""Weight of a sentence of an assistant, relative to one of a person: people state what the session is about."""
FACT_WEIGHT = 3.0
"""Weight of a sentence that states a fact, such as "I moved to Bergen.", relative to another one of a person."""


class Turn(NamedTuple):
    """An event of a session. ``is_quotable``: the summary may quote it."""

    event: EventRecord
    is_quotable: bool
    warning: str = ""


def turns_of(events: Sequence[EventRecord], notes: Collection[Note]) -> list[Turn]:
    """Return the events with a note that is neither archived, quarantined nor expired, in order.

    Merged notes count: the note that replaces them contains their events. Texts of tools, of untrusted writers and
    those that look like instructions are not quoted in summaries.
    """
    now = present_micros()
    visible = {
        event: note
        for note in notes
        if note.kind is Kind.EPISODIC and not note.archived and note.quarantined is None and not expired(note, now)
        for event in note.event_ids
    }
    return [
        Turn(event, event.role != "tool" and not is_on_probation(note), WARNING if note.flags else "")
        for event in events
        if (note := visible.get(event.event_id)) is not None
    ]


def session_text(turns: Sequence[Turn], max_tokens: int) -> str:
    """Return the last turns that fit into ``max_tokens``, after a summary of the others; "" without turns.

    The last turn is always there: if it alone is too long, its beginning. Example::

        ## Earlier in this session
        - 09:02 Ann: The move to Bergen is on 4 June.

        ## Last turns
        - 09:41 Ann: Can you book the van?
    """
    when = _time_format(turns)
    lines = [_line(turn, when) for turn in turns]
    if not lines:
        return ""
    text = "\n".join([LAST_TURNS, *lines])
    if estimate_tokens(text) <= max_tokens:
        return text
    first = _first_fitting(lines, max_tokens - int(SUMMARY_SHARE * max_tokens))
    recent = "\n".join([LAST_TURNS, *lines[first:]])
    if first == len(lines):
        return cut(f"{recent}\n{lines[-1]}", max_tokens)
    rest = max_tokens - estimate_tokens(f"{SUMMARY}\n\n\n{recent}") - 1  # 1 for rounding
    quotes = _summary(turns[:first], rest, when)
    return f"{SUMMARY}\n{quotes}\n\n{recent}" if quotes else recent


def _first_fitting(lines: Sequence[str], max_tokens: int) -> int:
    """Return the place of the first of the last lines that fit together; ``len(lines)`` if not even the last does."""
    used, first = estimate_tokens(LAST_TURNS + "\n"), len(lines)
    while first and (used := used + estimate_tokens(lines[first - 1] + "\n")) <= max_tokens:
        first -= 1
    return first


def _time_format(turns: Sequence[Turn]) -> str:
    """Return the format of times: of day, with the date if the session covers several days, "" without times."""
    moments = [turn.event.occurred_at for turn in turns if turn.event.occurred_at]
    clock = "%H:%M " if any(moment.time() != time() for moment in moments) else ""
    return f"%Y-%m-%d {clock}" if len({moment.date() for moment in moments}) > 1 else clock


def _line(turn: Turn, when: str) -> str:
    event = turn.event
    body = event_text(event).strip().replace("\n", "\n  ")
    return f"- {_source(event, when)}{body}{f' ({turn.warning})' if turn.warning else ''}"


def _source(event: EventRecord, when: str) -> str:
    """Return the time and the speaker of an event, as a prefix."""
    at = event.occurred_at.strftime(when) if event.occurred_at else ""
    return f"{at}{clip(event.speaker, SPEAKER_CHARS)}: " if event.speaker else at


class _Quote(NamedTuple):
    turn: int
    place: int
    line: str
    tokens: int
    words: frozenset[str]
    weight: float


def _summary(turns: Sequence[Turn], max_tokens: int, when: str) -> str:
    """Return the sentences that cover the most words of the turns for their length, in order, one per line."""
    rarity: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for turn in turns:
        found = {word.key: word.rarity for word in find_terms(event_text(turn.event)).words}
        rarity |= found
        counts.update(found)
    weights = {word: rare * math.log2(1 + counts[word]) for word, rare in rarity.items()}
    quotable = [(place, turn.event) for place, turn in enumerate(turns) if turn.is_quotable]
    quotes = [quote for place, event in quotable for quote in _quotes(place, event, weights, when)]
    chosen: list[_Quote] = []
    covered: set[str] = set()

    def gain(quote: _Quote) -> float:
        total = sum(weights[word] * (COVERED_WEIGHT if word in covered else 1.0) for word in quote.words)
        return quote.weight * total / math.sqrt(quote.tokens)

    while quotes := [quote for quote in quotes if quote.tokens <= max_tokens]:
        best = max(quotes, key=gain)
        quotes.remove(best)
        chosen.append(best)
        covered |= best.words
        max_tokens -= best.tokens
    return "\n".join(quote.line for quote in sorted(chosen))


def _quotes(turn: int, event: EventRecord, weights: Mapping[str, float], when: str) -> Iterator[_Quote]:
    """Yield the sentences of a turn that a summary may quote."""
    speaker = event.speaker or event.role or ""
    for place, sentence in enumerate(sentences(event_text(event))):
        words = frozenset(tokenize(sentence)) & weights.keys()
        if not words or len(sentence.split()) < MIN_WORDS or asks(sentence) or is_filler(sentence, event.role):
            continue
        line = f"- {_source(event, when)}{clip(sentence, MAX_QUOTED)}"
        is_answer = event.role == "assistant"
        weight = ANSWER_WEIGHT if is_answer else FACT_WEIGHT if states_fact(sentence, speaker) else 1.0
        yield _Quote(turn, place, line, estimate_tokens(line + "\n"), words, weight)
