"""What a scope's feedback adds to the memory decoder: a linear taste for traits of notes.

The decoder says which notes answer, the same for everybody. A taste says which of these are of use here: whose words,
of which kind, about what. It has a weight for each trait, 0 until something was learned, so it needs a few dozen uses
and not thousands; and it is small enough to be learned anew whenever one likes (see :mod:`zettel.scoring.tuning`).
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.annotate.mood import Mood
from zettel.annotate.statements import Matter, statements
from zettel.annotate.tokens import phrase_key
from zettel.errors import ScorerError
from zettel.scoring.slots import SLOT_FEATURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zettel.model import Proved
    from zettel.query import Floats, Shortlist
    from zettel.scoring.slots import Shown

VERSION = 1
"""Of the list of traits; weights go with one."""
FILE = "taste.safetensors"
SPEAKERS = 64
"""Numbers that speakers' names are hashed to: no name stands in the weights, and seldom do two share one."""
WORDING = (
    "number", "day", "money", "name", "place", "first person", "past", "changed", "supposed", "doubted", "asks",
    *(f"matter {matter.name}".lower() for matter in Matter), "length",
)  # fmt: skip
"""What one of a note's sentences has, 0 or 1; "length" is of the whole."""
SCALES = {"slots": 0.1, "vector": 1.5, "speaker": 6.0, "wording": 2.0, "utility": 1.0}
"""What each group of traits is multiplied by: how far it may go under one penalty for all. What the decoder has read
already counts least, who speaks most. Chosen on simulated feedback to conversations of our own."""
USUAL = 0.1
"""Of ten hits one is of use: a note that was proves as useful as any."""
DOUBT = 2.0
"""Searches that a note's utility is doubted as if they had shown the usual."""
_WORDINGS = 4096  # texts whose wording is remembered


class Taste(NamedTuple):
    """Weights in log-odds for each trait, (traits,), the embedder whose vectors they go with ("": none are read), and
    what they were learned from: how many searches, asked up to when (microseconds)."""

    weights: Floats
    vector: int
    embedder: str
    searches: int = 0
    upto: int = 0

    @classmethod
    def none(cls, vector: int, embedder: str) -> Taste:
        """One for nothing."""
        return cls(np.zeros(traits_count(vector), np.float32), vector, embedder)

    def of(self, shown: Shown, shortlist: Shortlist, utility: Floats) -> Floats:
        """What is added to the decoder's log-odds of each note, (m,)."""
        added: Floats = traits(shown, shortlist, utility, self.vector, self.embedder) @ self.weights
        return added

    def save(self, folder: Path) -> None:
        """Write it into a folder that is there."""
        from safetensors.numpy import save_file

        told = {"version": str(VERSION), "vector": str(self.vector), "embedder": self.embedder}
        told |= {"searches": str(self.searches), "upto": str(self.upto)}
        save_file({"weights": self.weights}, str(folder / FILE), told)

    @classmethod
    def load(cls, folder: Path) -> Taste | None:
        """That of a folder; None if it has none. Raises ``ScorerError`` for a file that is damaged or does not fit."""
        from safetensors import SafetensorError, safe_open

        path = folder / FILE
        if not path.exists():
            return None
        try:
            with safe_open(str(path), "numpy") as held:
                told, weights = held.metadata() or {}, held.get_tensor("weights")
            vector, numbers = int(told["vector"]), (int(told["searches"]), int(told["upto"]))
            version = int(told["version"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ScorerError(f"{path} holds no taste: {error}") from error
        if version != VERSION:
            raise ScorerError(f"{path} goes with traits of version {version}, and this zettel has version {VERSION}: "
                              "tune anew, into another folder")  # fmt: skip
        if weights.shape != (traits_count(vector),) or not np.isfinite(weights).all():
            raise ScorerError(f"{path}: its weights are not those of a taste")
        return cls(weights.astype(np.float32), vector, told["embedder"], *numbers)


def traits_count(vector: int) -> int:
    """How many traits a note has whose vector has so many numbers."""
    return len(SLOT_FEATURES) + vector + SPEAKERS + len(WORDING) + 1


def traits(shown: Shown, shortlist: Shortlist, utility: Floats, vector: int, embedder: str) -> Floats:
    """The traits of the m notes of a shortlist, each group on its scale: (m, traits_count(vector)).

    Vectors of another embedder than ``embedder`` are read as zeros.
    """
    m = len(shown.score)
    fits = vector > 0 and shown.embedder == embedder and shown.vectors.shape[1] == vector
    speaker = np.zeros((m, SPEAKERS), np.float32)
    for place, note in enumerate(shortlist.notes):
        if note.role:
            speaker[place, zlib.crc32(phrase_key(note.role).encode()) % SPEAKERS] = 1.0
    return np.concatenate(
        [
            SCALES["slots"] * shown.slots,
            SCALES["vector"] * (shown.vectors if fits else np.zeros((m, vector), np.float32)),
            SCALES["speaker"] * speaker,
            SCALES["wording"] * np.array([_wording(note.content) for note in shortlist.notes], np.float32),
            SCALES["utility"] * utility[:, None],
        ],
        axis=1,
    ).astype(np.float32)


@lru_cache(maxsize=_WORDINGS)
def _wording(text: str) -> tuple[float, ...]:
    said = statements(text)
    matters = [one.matter for one in said]
    told = (
        any(character.isdigit() for character in text),
        any(one.days for one in said),
        any(one.amounts for one in said),
        any(one.names for one in said),
        any(one.located for one in said),
        any(one.of_self for one in said),
        any(one.past for one in said),
        any(one.changed for one in said),
        any(one.mood is Mood.SUPPOSED for one in said),
        any(one.mood is Mood.DOUBTED for one in said),
        any(one.asks for one in said),
        *(any(matter & field for field in matters) for matter in Matter),
    )
    return (*map(float, told), float(np.log1p(len(text))) / 5.0)


def utilities(notes: Sequence[str], proved: Mapping[str, Proved]) -> Floats:
    """How useful each note proved when it was shown, -USUAL .. 1, (m,); 0 of one that never was.

    After n searches that had the note among their hits and of which something was told, r of them 1 where it was of
    use and the matter did not fail, else 0, it is

        Q = sum(r - USUAL) / (n + DOUBT),    that is, by one search more:    Q <- Q + (r - USUAL - Q) / (n + 1 + DOUBT)

    MemRL's running value (Zhang et al. 2026, "MemRL: Self-Evolving Agents via Runtime Reinforcement Learning on
    Episodic Memory": Q <- Q + rate (r - Q)) with a rate that falls, so that it is the mean over the log. It forgets
    as the log does: with the note, and with searches that are no longer among the newest.
    """
    found = [proved.get(note) for note in notes]
    told = [0.0 if one is None else (one.good - USUAL * one.shown) / (one.shown + DOUBT) for one in found]
    return np.array(told, np.float32)
