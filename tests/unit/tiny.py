"""Hand-made candidates with few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from zettel.model import ROLES, TIME_MAX, TIME_MIN, LinkType, Role
from zettel.ports.query import Candidates, Question, ScopeStats
from zettel.search.question import parse_question
from zettel.text.tokens import tokenize


@dataclass
class Row:
    """One note; ``vector`` contains the first components of a vector with four."""

    text: str
    vector: Sequence[float] = ()
    speaker: str | None = None
    role: Role | None = None
    session: str | None = None
    at: int = TIME_MIN
    valid_to: int = TIME_MAX
    pool: bool = True
    seeds: int = 0
    terms: Sequence[str] = ()
    event: int | None = None


@dataclass
class Tiny:
    """Rows in order of arrival, with links between them: (source, target, type) and optionally a weight."""

    rows: Sequence[Row]
    links: Sequence[tuple[int, int, LinkType] | tuple[int, int, LinkType, float]] = ()
    named: Sequence[str] = ()
    df: Mapping[str, int] = field(default_factory=dict)

    def ask(self, text: str, vector: Sequence[float] | None = None, today: int | None = None) -> Question:
        return parse_question(text, vector=None if vector is None else padded(vector), today=today)

    def about(self, question: Question) -> Candidates:
        n, tokens = len(self.rows), [tokenize(row.text) for row in self.rows]
        counts = np.array([[own.count(t) for t in question.tokens] for own in tokens], np.float32)
        tf = counts.reshape(n, len(question.tokens))
        length = np.array([len(own) for own in tokens], np.int64)
        vectors = np.array([padded(row.vector) for row in self.rows], np.float32).reshape(n, 4)
        names = tuple(dict.fromkeys(row.session for row in self.rows if row.session))
        session = np.array([names.index(row.session) if row.session else -1 for row in self.rows], np.int64)
        before, after = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        for number in range(len(names)):
            of = np.flatnonzero(session == number)
            before[of[1:]], after[of[:-1]] = of[:-1], of[1:]
        member = (session[None, :] == np.arange(len(names))[:, None]).astype(np.float32)
        speakers = [*dict.fromkeys(row.speaker for row in self.rows if row.speaker)]
        keys = tuple(dict.fromkeys(key for row in self.rows for key in row.terms))
        has = np.array([[key in row.terms for key in keys] for row in self.rows], np.float32).reshape(n, len(keys))
        ends = np.array([link[:2] for link in self.links], np.int64).reshape(-1, 2)
        return Candidates(
            ids=tuple(f"n_{row}" for row in range(n)),
            pool=np.array([row.pool for row in self.rows], bool),
            seeds=np.array([row.seeds for row in self.rows], np.int64),
            seq=np.arange(1, n + 1),
            event=np.array([i if row.event is None else row.event for i, row in enumerate(self.rows)], np.int64),
            kind=np.zeros(n, np.int64),
            speaker=np.array([speakers.index(row.speaker) if row.speaker else -1 for row in self.rows], np.int64),
            speaker_names=tuple(speakers),
            role=np.array([ROLES.index(row.role) if row.role else -1 for row in self.rows], np.int64),
            session=session,
            previous=before,
            next=after,
            occurred_at=np.array([row.at for row in self.rows], np.int64),
            valid_from=np.array([row.at for row in self.rows], np.int64),
            valid_to=np.array([row.valid_to for row in self.rows], np.int64),
            length=length,
            is_question=np.array([row.text.endswith("?") for row in self.rows], bool),
            tf=tf,
            cosine=vectors @ (np.zeros(4, np.float32) if question.vector is None else question.vector),
            link_source=ends[:, 0],
            link_target=ends[:, 1],
            link_type=np.array([list(LinkType).index(link[2]) for link in self.links], np.int64),
            link_weight=np.array([link[3] if len(link) == 4 else 1.0 for link in self.links], np.float32),
            term_keys=keys,
            term_df=np.array([self.df.get(key, int(has[:, i].sum())) for i, key in enumerate(keys)], np.int64),
            term_named=np.array([key in self.named for key in keys], bool),
            term_note=np.nonzero(has)[0],
            term_index=np.nonzero(has)[1],
            session_tf=member @ tf,
            session_length=np.asarray(member @ length, np.int64),
            stats=ScopeStats(n, int(length.sum()), (counts > 0).sum(axis=0).astype(np.int64).reshape(-1)),
        )


def padded(vector: Sequence[float]) -> np.ndarray:
    """Return a unit vector of four numbers, or zeros."""
    row = np.array([*vector, *([0.0] * (4 - len(vector)))], np.float32)
    return row / max(float(np.linalg.norm(row)), 1e-9)
