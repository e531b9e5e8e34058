"""The room of the scorers: who says which candidates answer a question.

A scorer is a pure function of a question and its candidates: ``FusionScorer`` is the default. A reranker (see
``zettel.ports``) reads the best that it found and orders them anew: the memory decoder, a cross-encoder, a language
model, one after the other in a cascade, or anybody's own. ``load_scorer`` makes one of a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from zettel.errors import InvalidInput
from zettel.ports import Reranker

if TYPE_CHECKING:
    from zettel.ports import Scorer
    from zettel.scoring.cascade import Cascade

ScorerSpec: TypeAlias = "str | Scorer | Reranker | Cascade | None"
Effort: TypeAlias = Literal["low", "mid", "high"]

ENTRY_POINTS = "zettel.scorers"
"""The group under which other packages announce scorers by name."""
READS = 100
"""Best notes that a reranker is given, unless it asks for fewer."""
_RERANKER = ("name", "reads", "wants_vectors", "rerank")


def load_scorer(spec: ScorerSpec = None) -> tuple[Scorer, tuple[Reranker, ...]]:
    """The first stage, and those that order its best anew, one after the other:

    * None or ``"fusion"``: the default scorer alone;
    * an object with ``score``: that in the default's place; one with ``rerank``, or a ``Cascade`` of such: after the
      default;
    * ``"decoder"``: the memory decoder with the weights that are shipped, ``"decoder:FOLDER"`` with others,
      or one that was tuned;
    * ``"cross-encoder"`` or ``"cross-encoder:NAME"``: a sentence-transformers cross-encoder, by name or folder;
    * ``"llm"``: the memory's language model;
    * ``"effort:low"``, ``"effort:mid"``, ``"effort:high"``: see ``zettel.scoring.cascade.EFFORTS``;
    * a name that another package announced in the entry point group ``zettel.scorers``: what it stands for, called
      without arguments, or for ``"NAME:REST"`` with REST.

    Weights are loaded here and now, which may take seconds. Raises ``InvalidInput`` for anything else,
    ``MissingExtra`` where torch is needed and absent, ``ScorerError`` for weights that cannot be read.
    """
    from zettel.scoring.cascade import Cascade
    from zettel.scoring.fusion import FusionScorer

    found = _named(spec) if isinstance(spec, str) else spec
    if found is None:
        return FusionScorer(), ()
    if isinstance(found, tuple):
        return FusionScorer(), found
    if isinstance(found, type):
        raise InvalidInput(f"scorer={found.__name__} is a class: hand in an object of it, {found.__name__}()")
    if isinstance(found, Cascade):
        return FusionScorer(), found.stages
    if hasattr(found, "rerank"):
        return FusionScorer(), (_whole(found),)
    if hasattr(found, "score"):
        return found, ()
    raise InvalidInput(f"scorer={spec!r} has neither score nor rerank: see zettel.ports.Scorer and Reranker")


def _whole(reranker: object) -> Reranker:
    """The same; ``InvalidInput`` if it lacks something."""
    if not isinstance(reranker, Reranker):
        missing = [name for name in _RERANKER if not hasattr(reranker, name)]
        raise InvalidInput(f"the scorer {reranker!r} has no {' and no '.join(missing)}: see zettel.ports.Reranker")
    if not isinstance(reranker.reads, int) or reranker.reads < 1:
        raise InvalidInput(f"the scorer {reranker.name} reads {reranker.reads!r} notes: a whole number from 1 on")
    return reranker


def _named(name: str) -> Scorer | Reranker | Cascade | tuple[Reranker, ...] | None:
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
    if kind == "effort":
        from zettel.scoring.cascade import stages_of_effort

        return stages_of_effort(rest)
    return _announced(name, kind, rest)


def _announced(name: str, kind: str, rest: str) -> Scorer | Reranker | Cascade:
    from importlib.metadata import entry_points

    others = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if kind not in others:
        known = ", ".join(["fusion", "decoder", "cross-encoder", "llm", *sorted(others)])
        raise InvalidInput(f"there is no scorer {name!r}: take one of {known}, or an object with score or rerank")
    made: Scorer | Reranker | Cascade = others[kind].load()(*([rest] if rest else []))
    return made
