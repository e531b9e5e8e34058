"""The ports: the Protocols that stores, annotators, embedders, scorers, language models and runners implement.

Each port is small and takes batches; all methods that may wait are asynchronous. To add an implementation, write one
file and register one entry point. For a store, ``zettel.testing.store_conformance`` checks it.
"""

from zettel.ports.annotator import Annotation, Annotator, Passage, TermStats
from zettel.ports.embedder import Embedder, EmbedderInfo, QuestionEmbedder, is_slow
from zettel.ports.runner import Runner
from zettel.ports.scorer import AnsweringScorer, JointScorer, Reranker, Scorer, UtilityReranker
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
    Written,
)

__all__ = [
    "Annotation",
    "Annotator",
    "AnsweringScorer",
    "CypherStore",
    "Embedder",
    "EmbedderInfo",
    "GraphStore",
    "JointScorer",
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
    "Written",
    "is_slow",
]
