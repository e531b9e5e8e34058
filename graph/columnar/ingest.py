"""Loading of notes and links from a store into columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.columns import KINDS, LINK_TYPES, MISSING, ROLE_NUMBERS, Columns, as_ints
from zettel.graph.keys import columns_of

if TYPE_CHECKING:
    from zettel.ports.query import Ints

_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_TYPE_NUMBERS = {type.value: number for number, type in enumerate(LINK_TYPES)}


def take_notes(columns: Columns, fetched: Sequence[tuple[Any, ...]]) -> set[int]:
    """Add new notes as rows and update changed ones. Returns their former and present sessions.

    ``fetched`` contains for each note: number, ``seq``, the event's number and ``seq``, part, ``occurred_at``,
    ``valid_from``, ``valid_to`` (as set by a person) and ``recorded_at`` in microseconds, length, ``asks``,
    ``archived``, id, kind, speaker, role, session, entries and terms packed by ``zettel.graph.keys``, and its vector as
    float32 or None. New notes have higher numbers than existing ones and are in ascending order.
    """
    *numeric, ids, kinds, speakers, roles, sessions, entries, terms, vectors = zip(*fetched, strict=True)
    (number, seq, event, event_seq, part, occurred_at, valid_from, valid_to, recorded_at, length, asks, archived) = map(
        as_ints, numeric
    )
    fields = {
        "number": number, "seq": seq, "event": event, "event_seq": event_seq, "part": part,
        "occurred_at": occurred_at, "valid_from": valid_from, "valid_to": valid_to, "recorded_at": recorded_at,
        "length": length, "asks": asks.astype(bool), "shown": archived == 0, "alive": np.ones(len(fetched), bool),
        "kind": as_ints([_KIND_NUMBERS[kind] for kind in kinds]),
        "speaker": columns.speakers.numbers(speakers),
        "role": as_ints([ROLE_NUMBERS[role] for role in roles]),
        "session": columns.sessions.numbers(sessions),
        "stamp": stamps(entries, terms, vectors),
    }  # fmt: skip
    rows = columns.rows_of(number)
    old = rows != MISSING
    affected = set(fields["session"].tolist())
    same = np.zeros(len(fetched), bool)  # content unchanged: often only links changed
    if old.any():
        known = rows[old]
        affected.update(columns.notes["session"][known].tolist())
        same[old] = (columns.notes["stamp"][known] == fields["stamp"][old]) & (
            columns.notes["shown"][known] == fields["shown"][old]
        )
        columns.release(rows[old & ~same])
        for name, values in fields.items():
            columns.notes[name][known] = values[old]
    rows[~old] = np.arange(columns.rows, columns.rows + int((~old).sum()))
    columns.notes.append(**{name: values[~old] for name, values in fields.items()})
    columns.ids.extend(id for id, known in zip(ids, old.tolist(), strict=True) if not known)
    changed = np.flatnonzero(~same)
    if len(changed):
        _take_content(columns, number[changed], rows[changed], *(
            [blobs[place] for place in changed.tolist()] for blobs in (entries, terms, vectors)
        ))  # fmt: skip
    return affected


def stamps(*parts: Sequence[bytes | None]) -> Ints:
    """Return a 64-bit hash of each note's content, the same in every process."""
    notes = [b"".join(part or b"" for part in note) for note in zip(*parts, strict=True)]
    return np.frombuffer(b"".join([hashlib.sha1(note, usedforsecurity=False).digest()[:8] for note in notes]), "<i8")


def _take_content(
    columns: Columns,
    numbers: Ints,
    rows: Ints,
    entries: Sequence[bytes],
    terms: Sequence[bytes],
    vectors: Sequence[bytes | None],
) -> None:
    """Set index entries, terms and vectors of rows."""
    keys, counts, sizes = columns_of(entries)
    columns.post(np.repeat(rows, sizes), keys, counts)
    keys, counts, sizes = columns_of(terms)
    columns.set_terms(rows, sizes, keys, counts)
    if columns.dim:
        embedded = np.array([vector is not None for vector in vectors], bool)
        matrix = np.zeros((len(rows), columns.dim), np.float32)
        blob = b"".join(vector for vector in vectors if vector is not None)
        matrix[embedded] = np.frombuffer(blob, "<f4").reshape(-1, columns.dim)
        columns.vectors.put(rows, matrix, None if columns.ivf is None else columns.ivf.of(numbers))


def take_links(columns: Columns, changed: Ints, fetched: Sequence[tuple[Any, ...]]) -> None:
    """Replace the outgoing links of changed notes, skipping links to unknown notes.

    ``fetched`` contains for each link the numbers of source, target and owner, ``recorded_at``, type and weight.
    """
    rows = columns.rows_of(changed)
    if not fetched:
        columns.unlink(rows)
        return
    sources, targets, owners, recorded, types, weights = zip(*fetched, strict=True)
    source, target = columns.rows_of(as_ints(sources)), columns.rows_of(as_ints(targets))
    links: dict[str, Any] = {
        "target": target, "owner": columns.rows_of(as_ints(owners)), "recorded_at": as_ints(recorded),
        "type": as_ints([_TYPE_NUMBERS[type] for type in types]), "weight": np.array(weights, np.float32),
    }  # fmt: skip
    known = np.flatnonzero(target != MISSING)
    known = known[np.argsort(source[known], kind="stable")]
    sizes = np.bincount(np.searchsorted(rows, source[known]), minlength=len(rows))
    columns.link(rows, sizes, **{name: values[known] for name, values in links.items()})
