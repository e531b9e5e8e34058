"""Notes and links as a store tells them, into columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.columns import GONE, KINDS, LINK_TYPES, Columns, as_ints
from zettel.graph.keys import columns_of

if TYPE_CHECKING:
    from zettel.query import Ints

_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_TYPE_NUMBERS = {type.value: number for number, type in enumerate(LINK_TYPES)}


def take_notes(columns: Columns, fetched: Sequence[tuple[Any, ...]]) -> set[int]:
    """New notes as new rows, changed ones in their place; the sessions that they were or are in.

    Of each note ``fetched`` tells number, ``seq``, the event's number and ``seq``, part, the microseconds when it
    occurred, is valid from and was recorded, length, whether it asks, whether it is archived, id, kind, role, session,
    entries and Terms as ``zettel.graph.keys`` packs them, and its vector as float32 or None. New notes have higher
    numbers than those that are there, and come in their order.
    """
    *numeric, ids, kinds, roles, sessions, entries, terms, vectors = zip(*fetched, strict=True)
    (number, seq, event, event_seq, part, occurred_at, valid_from, recorded_at, length, asks, archived) = map(
        as_ints, numeric
    )
    fields = {
        "number": number, "seq": seq, "event": event, "event_seq": event_seq, "part": part,
        "occurred_at": occurred_at, "valid_from": valid_from, "recorded_at": recorded_at, "length": length,
        "asks": asks.astype(bool), "shown": archived == 0, "alive": np.ones(len(fetched), bool),
        "kind": as_ints([_KIND_NUMBERS[kind] for kind in kinds]),
        "role": columns.roles.numbers(roles),
        "session": columns.sessions.numbers(sessions),
        "stamp": _stamps(entries, terms, vectors),
    }  # fmt: skip
    rows = columns.rows_of(number)
    old = rows != GONE
    affected = set(fields["session"].tolist())
    same = np.zeros(len(fetched), bool)  # what they are found by: mostly only their links changed
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
    anew = np.flatnonzero(~same)
    if len(anew):
        _take_content(columns, number[anew], rows[anew], *(
            [blobs[place] for place in anew.tolist()] for blobs in (entries, terms, vectors)
        ))  # fmt: skip
    return affected


def _stamps(entries: Sequence[bytes], terms: Sequence[bytes], vectors: Sequence[bytes | None]) -> Ints:
    """64 bits by which it is seen that a note's content did not change; the same in every process, for snapshots.

    No two kinds of entries have a key in common, so one behind the other they cannot be mistaken.
    """
    whole = map(b"".join, zip(entries, terms, [vector or b"" for vector in vectors], strict=True))
    return np.frombuffer(b"".join([hashlib.sha1(one, usedforsecurity=False).digest()[:8] for one in whole]), "<i8")


def _take_content(
    columns: Columns,
    numbers: Ints,
    rows: Ints,
    entries: Sequence[bytes],
    terms: Sequence[bytes],
    vectors: Sequence[bytes | None],
) -> None:
    """What notes are found by, into their rows."""
    keys, counts, sizes = columns_of(entries)
    columns.post(np.repeat(rows, sizes), keys, counts)
    keys, counts, sizes = columns_of(terms)
    columns.hold(rows, sizes, keys, counts)
    if columns.dim:
        embedded = np.array([vector is not None for vector in vectors], bool)
        matrix = np.zeros((len(rows), columns.dim), np.float32)
        filled = b"".join(vector for vector in vectors if vector is not None)
        matrix[embedded] = np.frombuffer(filled, "<f4").reshape(-1, columns.dim)
        columns.vectors.put(rows, matrix, None if columns.listed is None else columns.listed.of(numbers))


def take_links(columns: Columns, changed: Ints, fetched: Sequence[tuple[Any, ...]]) -> None:
    """The links that start at notes that changed, in place of those they had: the numbers of source, target and owner,
    microseconds when it was recorded, type and weight. Those to notes that are not there are left out."""
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
    kept = np.flatnonzero(target != GONE)
    kept = kept[np.argsort(source[kept], kind="stable")]
    sizes = np.bincount(np.searchsorted(rows, source[kept]), minlength=len(rows))
    columns.link(rows, sizes, **{name: values[kept] for name, values in links.items()})
