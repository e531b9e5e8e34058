"""Checks that a fact of a model is supported by its turn: no number, date or name is new, and half of its words occur.

A rule cannot judge paraphrases, so it errs on one side: a fact in entirely other words is dropped, and the turn itself
remains. Facts that negate or recombine the words of the turn pass; their trust is that of the notes in the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta

from zettel.model import TimeRange
from zettel.ports.annotator import Passage
from zettel.text.dates import placed_dates
from zettel.text.names import find_names
from zettel.text.tokens import clean, tokenize

MIN_OVERLAP = 0.5
"""The share of a fact's words that its turn, or a turn just before it, must contain."""
MIN_STEM = 5
"""The fewest letters of a word that supports an inflected form, such as "Nachtschicht" for "Nachtschichten"."""
MAX_ENDING = 3
"""The most letters by which an inflected form is longer."""
ABOUT_NOW = timedelta(days=1)
"""Dates this close to the turn need no other support: words such as "yesterday" occur in every language."""

_ENDINGS = re.compile("[\u3041-\u309f]")
"""Hiragana: tokens of Japanese with one are mostly endings and particles, which differ between tellings."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SMALL = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty"
)
_WRITTEN = {word: str(number) for number, word in enumerate(_SMALL.split(), 2)}
"""Numbers that people write as words; "one" is left out because it is seldom a number."""


def is_supported(fact: str, turn: Passage, before: Sequence[Passage] = ()) -> bool:
    """Return whether a turn and the turns just ``before`` it support a fact. The turn itself must share a word with it.

    >>> turn = Passage("I moved to Oslo in May.", None, "Ann", None)
    >>> is_supported("Ann lives in Oslo.", turn), is_supported("Ann lives in Rome.", turn)
    (True, False)
    """
    shown = [turn, *before]
    fact = clean(fact)
    dates = placed_dates(fact, turn.occurred_at)
    known = [time for passage in shown for _, time in placed_dates(clean(_text(passage)), passage.occurred_at)]
    numbers = {number for passage in shown for number in _numbers(_text(passage))}
    for place, time in reversed(dates):
        if set(_numbers(time.text)) <= numbers or _is_near(time, turn) or any(_overlap(time, other) for other in known):
            fact = fact[:place] + " " + fact[place + len(time.text) :]
    if not numbers.issuperset(_numbers(fact)):
        return False
    texts = set().union(*(_words(_text(passage)) for passage in shown))
    names = find_names(f"that {fact}")  # not at the start of a sentence, where a capital alone marks no name
    if not all(_occurs(token, texts) for name in names for token in _words(name.text)):
        return False
    tokens = _words(fact)
    own = _words(" ".join((turn.title or "", turn.content)))
    supported = sum(_occurs(token, texts) for token in tokens)
    return any(_occurs(token, own) for token in tokens) and supported >= MIN_OVERLAP * len(tokens)


def _text(passage: Passage) -> str:
    return " ".join((passage.speaker or "", passage.title or "", passage.content))


def _words(text: str) -> set[str]:
    return {token for token in tokenize(text) if not _ENDINGS.search(token)}


def _numbers(text: str) -> Iterable[str]:
    """Return the numbers of a text in one form, those in words included."""
    for number in _NUMBER.findall(clean(text)):
        yield number.replace(",", "").lstrip("0") or "0"
    for word in text.casefold().split():
        if written := _WRITTEN.get(word.strip(".,;:!?\"'()")):
            yield written


def _occurs(token: str, texts: set[str]) -> bool:
    """Return whether texts contain a token, or the same word with a longer or shorter ending."""
    if token in texts or _WRITTEN.get(token) in texts:
        return True
    shortest = max(MIN_STEM, len(token) - MAX_ENDING)
    if any(token[:size] in texts for size in range(shortest, len(token))):
        return True
    longest = len(token) + MAX_ENDING
    return len(token) >= MIN_STEM and any(len(text) <= longest and text.startswith(token) for text in texts)


def _is_near(time: TimeRange, turn: Passage) -> bool:
    now = turn.occurred_at
    return now is not None and time.start - ABOUT_NOW <= now < time.end + ABOUT_NOW


def _overlap(time: TimeRange, other: TimeRange) -> bool:
    return time.start < other.end and other.start < time.end
