"""Weighs how much a sentence states about its speaker, for the profile.

The weight is the log-odds of a logistic regression: is the sentence on a fact sheet that somebody made of the person?
Its inputs are cues ("my wife", "I'm allergic", "from now on"), length and position. Cues and weights are in the
file of the language. ``zettel bench profile --fit`` fits them to chats with fact sheets.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

from zettel.text.frames import Language

LONG = 100
"""Characters from which a longer sentence weighs no more: it is about more, but also about other matters."""


class Place(NamedTuple):
    """The place of a sentence: its number in the message from 0, and how many there are."""

    number: int
    sentences: int


def inputs(sentence: str, place: Place, language: Language) -> list[float]:
    """Return 1 or 0 for each cue of the language, and the values of ``ABOUT_NUMBERS``."""
    text = sentence.replace("\u2019", "'")
    cues = [float(cue.search(text) is not None) for cue, _ in language.about]
    return [*cues, log(min(max(len(text), 1), LONG)), float(place.number > 0), log(max(place.sentences, 1))]


def weight_about(sentence: str, place: Place, language: Language) -> float:
    """Return the log-odds that a sentence belongs into a profile.

    The language must have cues.
    """
    weights = [*(weight for _, weight in language.about), *language.about_numbers]
    return sum(map(float.__mul__, weights, inputs(sentence, place, language))) + language.about_bias
