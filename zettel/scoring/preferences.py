"""Preferences of a scope: a linear model over traits of notes, added to the memory decoder.

The decoder is the same for everybody. Preferences rank the notes that were useful in one scope: by speaker, kind and
topic. A linear model learns from a few dozen uses (see :mod:`zettel.scoring.tuning`).
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.errors import ScorerError
from zettel.model import TIME_MIN, Proved
from zettel.scoring.decoder_inputs import NOTE_FEATURES
from zettel.text.mood import Mood
from zettel.text.statements import Matter, parse_sentences
from zettel.text.tokens import phrase_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zettel.ports.query import Floats, Shortlist
    from zettel.scoring.decoder_inputs import DecoderInput

VERSION = 2
"""Version of the list of traits. Weights belong to one version."""
FILE = "taste.safetensors"
SPEAKERS = 64
"""Buckets for hashed speaker names, so that weights contain no names. Few names share a bucket."""
WORDING = (
    "number", "day", "money", "name", "place", "first person", "past", "changed", "supposed", "doubted", "asks",
    *(f"matter {matter.name}".lower() for matter in Matter), "length",
)  # fmt: skip
"""Traits of the wording: 1 if any sentence has the trait, else 0. "length" is that of the note."""
SCALES = {"features": 0.1, "vector": 1.5, "speaker": 6.0, "wording": 2.0, "age": 2.0, "utility": 1.0}
"""Scale of each group of traits, which sets its strength under the shared penalty. Chosen on simulated feedback to our
own conversations."""
USEFUL_SHARE = 0.1
"""Share of hits that are useful on average."""
PRIOR_SEARCHES = 2.0
"""Weight of the prior utility 0, in searches."""
_CACHED_TEXTS = 4096
_YEAR = 365.25 * 86_400_000_000.0  # microseconds


class Preferences(NamedTuple):
    """Weights of the traits in log-odds, and the searches from which they were learned."""

    weights: Floats  # (traits,)
    vector_dim: int  # 0: vectors are ignored
    embedder: str  # fingerprint of the embedder of the vectors
    searches: int = 0
    upto: int = 0  # time of the newest search, in microseconds

    @classmethod
    def empty(cls, vector_dim: int, embedder: str) -> Preferences:
        return cls(np.zeros(traits_count(vector_dim), np.float32), vector_dim, embedder)

    def score(self, input: DecoderInput, shortlist: Shortlist, utility: Floats) -> Floats:
        """The log-odds to add to those of the decoder, (m,)."""
        odds: Floats = traits(input, shortlist, utility, self.vector_dim, self.embedder) @ self.weights
        return odds

    def to_text(self) -> str:
        """Return the preferences as JSON, for ``from_text``."""
        weights = b64encode(self.weights.astype("<f4").tobytes()).decode()
        return json.dumps({"version": VERSION, **self._asdict(), "weights": weights})

    @classmethod
    def from_text(cls, text: str) -> Preferences | None:
        """The inverse of ``to_text``; None for weights of another version."""
        fields = json.loads(text)
        if fields.pop("version") != VERSION:
            return None
        weights = np.frombuffer(b64decode(fields.pop("weights")), "<f4").astype(np.float32)
        return cls(weights=weights, **fields) if weights.shape == (traits_count(fields["vector_dim"]),) else None

    def save(self, folder: Path) -> None:
        """Write FILE to an existing folder."""
        from safetensors.numpy import save_file

        metadata = {
            "version": str(VERSION), "vector": str(self.vector_dim), "embedder": self.embedder,
            "searches": str(self.searches), "upto": str(self.upto),
        }  # fmt: skip
        save_file({"weights": self.weights}, str(folder / FILE), metadata)

    @classmethod
    def load(cls, folder: Path) -> Preferences | None:
        """Read FILE of a folder; None if it is missing. Raises ``ScorerError`` for a damaged or unsuitable file."""
        from safetensors import SafetensorError, safe_open

        path = folder / FILE
        if not path.exists():
            return None
        try:
            with safe_open(str(path), "numpy") as file:
                metadata, weights = file.metadata() or {}, file.get_tensor("weights")
            version, vector_dim, searches, upto = (
                int(metadata[name]) for name in ("version", "vector", "searches", "upto")
            )
            embedder = metadata["embedder"]
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ScorerError(f"{path} cannot be read: {error}") from error
        if version != VERSION:
            raise ScorerError(
                f"{path} has traits of version {version}, and this zettel has version {VERSION}: tune again, into "
                "another folder"
            )
        if weights.shape != (traits_count(vector_dim),) or not np.isfinite(weights).all():
            raise ScorerError(f"{path} has wrong weights: tune again, into another folder")
        return cls(weights.astype(np.float32), vector_dim, embedder, searches, upto)


def traits_count(vector_dim: int) -> int:
    return len(NOTE_FEATURES) + vector_dim + SPEAKERS + len(WORDING) + 2  # age and utility


def traits(input: DecoderInput, shortlist: Shortlist, utility: Floats, vector_dim: int, embedder: str) -> Floats:
    """The scaled traits of the m notes of a shortlist: (m, traits_count(vector_dim)).

    Vectors of an embedder other than ``embedder`` count as zeros.
    """
    m = len(input.base_score)
    fits = vector_dim > 0 and input.embedder == embedder and input.note_vectors.shape[1] == vector_dim
    speaker = np.zeros((m, SPEAKERS), np.float32)
    for place, note in enumerate(shortlist.notes):
        if note.speaker:
            speaker[place, zlib.crc32(phrase_key(note.speaker).encode()) % SPEAKERS] = 1.0
    return np.concatenate(
        [
            SCALES["features"] * input.notes,
            SCALES["vector"] * (input.note_vectors if fits else np.zeros((m, vector_dim), np.float32)),
            SCALES["speaker"] * speaker,
            SCALES["wording"] * np.array([_wording(note.content) for note in shortlist.notes], np.float32),
            SCALES["age"] * _age(shortlist)[:, None],
            SCALES["utility"] * utility[:, None],
        ],
        axis=1,
    ).astype(np.float32)


def _age(shortlist: Shortlist) -> Floats:
    """The age of each note in years, (m,), counted from the newest of the shortlist; undated notes have the mean."""
    when = shortlist.candidates.occurred_at[shortlist.rows]
    known = when != TIME_MIN
    if not known.any():
        return np.zeros(len(when), np.float32)
    years = (when[known].max() - np.where(known, when, 0)) / _YEAR
    ages: Floats = np.where(known, years, years[known].mean()).astype(np.float32)
    return ages


@lru_cache(maxsize=_CACHED_TEXTS)
def _wording(text: str) -> tuple[float, ...]:
    sentences = parse_sentences(text)
    flags = (
        any(character.isdigit() for character in text),
        any(sentence.days for sentence in sentences),
        any(sentence.amounts for sentence in sentences),
        any(sentence.names for sentence in sentences),
        any(sentence.located for sentence in sentences),
        any(sentence.is_first_person for sentence in sentences),
        any(sentence.past for sentence in sentences),
        any(sentence.changed for sentence in sentences),
        any(sentence.mood is Mood.SUPPOSED for sentence in sentences),
        any(sentence.mood is Mood.DOUBTED for sentence in sentences),
        any(sentence.is_question for sentence in sentences),
        *(any(matter & sentence.matter for sentence in sentences) for matter in Matter),
    )
    return (*map(float, flags), float(np.log1p(len(text))) / 5.0)


def utilities(notes: Sequence[str], proved: Mapping[str, Proved]) -> Floats:
    """The utility of each note, -USEFUL_SHARE .. 1, (m,); 0 for a note without feedback.

    Over the n searches with feedback that showed the note, r is 1 if the note was used and the outcome was not a
    failure, else 0:

        Q = sum(r - USEFUL_SHARE) / (n + PRIOR_SEARCHES)

    This is the running value of MemRL (Zhang et al. 2026, "MemRL: Self-Evolving Agents via Runtime Reinforcement
    Learning on Episodic Memory": Q <- Q + rate (r - Q)) with a falling rate, and so a mean over the log.
    """
    uses = [proved.get(note, Proved(0, 0)) for note in notes]
    return np.array([(use.good - USEFUL_SHARE * use.shown) / (use.shown + PRIOR_SEARCHES) for use in uses], np.float32)
