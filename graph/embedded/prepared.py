"""Preparation of a batch before its transaction: JSON and keyed hashes."""

from __future__ import annotations

from typing import NamedTuple

from zettel.graph.bodies import body_of, uses_body
from zettel.graph.keys import Entry, Keys
from zettel.model import NoteIndex
from zettel.ports.operations import Batch, Op, PutEvent, PutNote, PutRevision, RestoreNote


class Indexed(NamedTuple):
    """A note's index entries in their stored form."""

    entries: list[Entry]
    terms: list[Entry]
    names: list[tuple[int, str]]
    uses: str
    length: int


class Prepared(NamedTuple):
    """An operation with its JSON body and index entries."""

    op: Op
    body: str = ""
    indexed: Indexed | None = None


def prepare(batch: Batch, keys: Keys) -> list[Prepared]:
    """Compute JSON and hashes of a batch's operations."""
    return [_prepared(op, keys) for op in batch.ops]


def _prepared(op: Op, keys: Keys) -> Prepared:
    if isinstance(op, PutEvent):
        return Prepared(op, body_of(op.event))
    if isinstance(op, (PutNote, RestoreNote)):
        return Prepared(op, body_of(op.note), _indexed(op.index, keys))
    if isinstance(op, PutRevision):
        return Prepared(op, body_of(op.note), _indexed(op.index, keys) if op.index else None)
    return Prepared(op)


def _indexed(index: NoteIndex, keys: Keys) -> Indexed:
    names = [(keys.term(use.key), use.key) for use in index.terms]
    terms = [(key, use.count) for (key, _), use in zip(names, index.terms, strict=True)]
    return Indexed(keys.entries(index), terms, names, uses_body(index.terms), index.length)
