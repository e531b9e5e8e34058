"""Calibration of scores to 0..1: the chance that the best note answers, and the other notes relative to it.

The chance comes from the features of the best note and of the question, and from how far the best note is ahead. It is
fitted to questions with and without an answer, in memories of 1 to several hundred notes (``zettel scorer fit``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.scoring.features import NOTE_NAMES, QUESTION_FEATURES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Floats
    from zettel.scoring.features import FeatureTable
    from zettel.scoring.networks import Networks

RIVALS = 5
"""Next best notes that the best one is compared with."""
FAR_AHEAD = 8.0
"""Log-odds from which the best note counts as alone."""
HIGH = 20.0
"""Highest local score that counts."""
_NOTE_FEATURES = (
    "vector", "coverage", "text", "rarest", "vector_standardized", "text_standardized", "text_window_1",
    "vector_window_1", "speaker", "time", "question", "user", "assistant", "length", "vector_behind_best",
    "text_behind_best", "vector_event", "text_event",
)  # fmt: skip
_QUESTION_FEATURES = (
    "first_person", "asks_assistant", "asks_user", "request", "many", "time_only", "length", "speaker_named",
    "time_named", "best_text", "best_vector", "roles", "mean_length", "notes", "yes_or_no", "when", "how_many", "who",
    "where",
)  # fmt: skip
ANSWER_FEATURES = (
    *_NOTE_FEATURES, *(f"question: {name}" for name in _QUESTION_FEATURES), "ahead", "perplexity", "local",
    "best_coverage",
)  # fmt: skip
"""Names of the inputs of the calibration."""
_NOTE_PLACES = [NOTE_NAMES.index(name) for name in _NOTE_FEATURES]
_QUESTION_PLACES = [QUESTION_FEATURES.index(name) for name in _QUESTION_FEATURES]


def answer_features(table: FeatureTable, local: NDArray[np.float64], best: int) -> Floats:
    """Return the evidence that the note at ``best`` answers: (r,) local scores, r at least 1 -> (ANSWER_FEATURES,)."""
    others = np.delete(local, best)
    rivals = np.partition(others, len(others) - RIVALS)[-RIVALS:] if len(others) > RIVALS else others
    ahead = min(float(local[best] - rivals.mean()), FAR_AHEAD) if len(rivals) else FAR_AHEAD
    perplexity = np.log(np.exp(local - local.max()).sum())
    rest = [ahead, perplexity, min(float(local[best]), HIGH), table.note("coverage").max()]
    return np.concatenate([table.notes[best, _NOTE_PLACES], table.question[_QUESTION_PLACES], rest]).astype(np.float32)


def chance(networks: Networks, features: Floats) -> Floats:
    """Return the probabilities of an answer, 0..1: (n, ANSWER_FEATURES) -> (n,)."""
    odds = networks.scores(networks.standardized(features))
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * odds)))


def calibrate(order: NDArray[np.float64], chance: float, pool: Bools) -> Floats:
    """Return scores in 0..1 in the order of ``order``, with ``chance`` for the best: (n,)."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    return np.asarray(chance * np.clip(order / top, 0.0, 1.0), np.float32)
