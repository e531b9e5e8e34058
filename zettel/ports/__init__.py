"""The ports: Protocols for what a store, an annotator, an embedder, a scorer, a language model and a runner must do.

Each is small, asynchronous and batch-shaped. To write another one, write one file and one entry point; the
conformance suite checks it.
"""

from zettel.ports.annotator import Annotation, Annotator, Passage, TermStats
from zettel.ports.embedder import Embedder, EmbedderInfo, QuestionEmbedder
from zettel.ports.runner import Runner
from zettel.ports.scorer import AnsweringScorer, Reranker, Scorer, UtilityReranker
from zettel.ports.settings import Settings
from zettel.ports.store import (
    CypherStore,
    GraphStore,
    LookupQuery,
    LookupResult,
    NearestNotes,
    NoteHistory,
    NoteRecord,
    ScopeState,
    SurveyingStore,
    VectorSet,
)

__all__ = [
    "Annotation",
    "Annotator",
    "AnsweringScorer",
    "CypherStore",
    "Embedder",
    "EmbedderInfo",
    "GraphStore",
    "LookupQuery",
    "LookupResult",
    "NearestNotes",
    "NoteHistory",
    "NoteRecord",
    "Passage",
    "QuestionEmbedder",
    "Reranker",
    "Runner",
    "ScopeState",
    "Scorer",
    "Settings",
    "SurveyingStore",
    "TermStats",
    "UtilityReranker",
    "VectorSet",
]
