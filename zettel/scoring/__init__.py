"""Scorers and rerankers, and ``load_scorer``, which loads them by name.

A scorer is a pure function of a question and its candidates; ``FusionScorer`` is the default. A reranker (see
``zettel.ports``) reorders the best notes: the memory decoder, a cross-encoder, a language model, your own, or several
in a ``Cascade``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from zettel.errors import InvalidInput
from zettel.ports import Reranker

if TYPE_CHECKING:
    from zettel.ports import Scorer

ScorerSpec: TypeAlias = "str | Scorer | Reranker | Cascade | None"

ENTRY_POINTS = "zettel.scorers"
"""Entry point group in which other packages register scorers."""
_RERANKER = ("name", "reads", "wants_vectors", "rerank")


class Cascade:
    """Several rerankers in turn: each reorders the best ``reads`` notes of the order before it.

    ``rerankers`` are objects, names for ``load_scorer``, or cascades; ``stages`` are the loaded rerankers. Raises
    ``InvalidInput`` for an empty cascade or a scorer that is not a reranker, and the errors of ``load_scorer``.
    """

    def __init__(self, rerankers: Iterable[str | Reranker | Cascade]) -> None:
        self.stages = tuple(stage for reranker in rerankers for stage in _stages(reranker))
        if not self.stages:
            raise InvalidInput("a cascade needs rerankers: name one or more")


def load_scorer(spec: ScorerSpec = None) -> tuple[Scorer, tuple[Reranker, ...]]:
    """The scorer, and the rerankers that reorder its best notes, in turn. ``spec`` is one of:

    * None or ``"fusion"``: the default scorer alone;
    * an object with ``score``, in place of the default; an object with ``rerank``, or a ``Cascade``, after the default;
    * ``"decoder"``: the shipped memory decoder; ``"decoder:FOLDER"``: a trained or tuned one;
    * ``"cross-encoder"`` or ``"cross-encoder:NAME"``: a sentence-transformers cross-encoder, by name or folder;
    * ``"llm"``: the memory's language model;
    * a name that another package registered in the entry point group ``zettel.scorers``; ``"NAME:REST"`` passes REST.

    Loads weights immediately, which may take seconds. Raises ``InvalidInput`` for any other spec, ``MissingExtra``
    without torch where it is required, ``ScorerError`` for weights that cannot be read.
    """
    from zettel.scoring.fusion import FusionScorer

    scorer = _by_name(spec) if isinstance(spec, str) else spec
    if scorer is None:
        return FusionScorer(), ()
    if isinstance(scorer, type):
        raise InvalidInput(f"scorer={scorer.__name__} is a class: pass an instance, {scorer.__name__}()")
    if isinstance(scorer, Cascade):
        return FusionScorer(), scorer.stages
    if hasattr(scorer, "rerank"):
        return FusionScorer(), (_require_reranker(scorer),)
    if hasattr(scorer, "score"):
        return scorer, ()
    raise InvalidInput(f"scorer={spec!r} has neither score nor rerank: see zettel.ports.Scorer and Reranker")


def _require_reranker(reranker: object) -> Reranker:
    """Return the reranker. Raises ``InvalidInput`` for a missing attribute."""
    if not isinstance(reranker, Reranker):
        missing = [name for name in _RERANKER if not hasattr(reranker, name)]
        raise InvalidInput(f"the scorer {reranker!r} has no {' and no '.join(missing)}: see zettel.ports.Reranker")
    if not isinstance(reranker.reads, int) or reranker.reads < 1:
        raise InvalidInput(f"the scorer {reranker.name} has reads={reranker.reads!r}: use a whole number from 1")
    return reranker


def _stages(spec: str | Reranker | Cascade) -> tuple[Reranker, ...]:
    stages = load_scorer(spec)[1]
    if not stages:
        raise InvalidInput(f"{spec!r} is not a reranker: a cascade takes rerankers, see zettel.ports.Reranker")
    return stages


def _by_name(name: str) -> Scorer | Reranker | Cascade | None:
    kind, _, rest = name.partition(":")
    if name == "fusion":
        return None
    if kind == "decoder":
        from zettel.scoring.device import require_torch

        require_torch("the memory decoder")
        from zettel.scoring.tuned import load

        return load(rest or None)
    if kind == "cross-encoder":
        from zettel.scoring.cross_encoder import CrossEncoderScorer

        return CrossEncoderScorer(rest) if rest else CrossEncoderScorer()
    if name == "llm":
        from zettel.scoring.by_model import LLMScorer

        return LLMScorer()
    return _by_entry_point(name, kind, rest)


def _by_entry_point(name: str, kind: str, rest: str) -> Scorer | Reranker | Cascade:
    from importlib.metadata import entry_points

    registered = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if kind not in registered:
        known = ", ".join(["fusion", "decoder", "cross-encoder", "llm", *sorted(registered)])
        raise InvalidInput(f"unknown scorer {name!r}: use one of {known}, or an object with score or rerank")
    scorer: Scorer | Reranker | Cascade = registered[kind].load()(*([rest] if rest else []))
    return scorer
