"""Exact queries: counts, groups and lists of notes or events that meet conditions, without ranking.

Paper: Hu et al. 2023, "ChatDB: Augmenting LLMs with Databases as Their Symbolic Memory" (arXiv:2306.03901). There a
model writes SQL. Here it fills in a few typed fields, so a query cannot leave its scope, change anything or take long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

from zettel.core.arguments import names_of, require_text
from zettel.core.paging import archived_pages, pages
from zettel.core.selection import Selected, ordered, selected, tally
from zettel.errors import InvalidInput
from zettel.model import EventRecord, Group, Note, QueryResult, Scope, from_micros
from zettel.ports import GraphStore
from zettel.ports.query import DAY, SLOT, TALLY_FIELDS, Selection, Tally
from zettel.text.tokens import phrase_key, tokenize

PAGE = 500
"""Notes per read of a query that includes the archive."""
MOST_WORDS = 20
"""Words, and terms, of one query."""
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS: Mapping[str, Callable[[datetime], str]] = {
    "year": lambda moment: f"{moment.year:04}",
    "month": lambda moment: f"{moment.year:04}-{moment.month:02}",
    "week": lambda moment: "{:04}-W{:02}".format(*moment.isocalendar()[:2]),
    "day": lambda moment: moment.date().isoformat(),
    "weekday": lambda moment: _WEEKDAYS[moment.weekday()],
}
FIELDS = (*(field for field in TALLY_FIELDS if field not in ("day", "slot")), *_UNITS)
"""The fields that a query may group by."""
ITEM_ORDERS = ("time", "arrival")
GROUP_ORDERS = ("count", "key", "first", "last")
_LABELS = frozenset({"tag", "term"})


class Grouping(NamedTuple):
    """How a query groups and orders: fields of ``FIELDS``, the zone of days, an order with or without "-"."""

    by: tuple[str, ...]
    zone: tzinfo
    order: str
    limit: int

    @property
    def moment(self) -> str:
        """The field of ``TALLY_FIELDS`` whose values add up to its days."""
        return "day" if self.zone is timezone.utc else "slot"


def grouping_of(group_by: Any, zone: tzinfo, order: str | None, limit: int) -> Grouping:
    """Return the checked grouping. Raises ``InvalidInput``."""
    by = tuple(dict.fromkeys(names_of("group_by", group_by)))
    for field in by:
        if field not in FIELDS:
            raise InvalidInput(f"group_by={field!r} is not a field: use {', '.join(FIELDS)}")
    if by and set(by) >= _LABELS:
        raise InvalidInput("group_by takes tag or term, not both: run two queries")
    orders = GROUP_ORDERS if by else ITEM_ORDERS
    order = order or ("-count" if by else "time")
    if not isinstance(order, str) or order.removeprefix("-") not in orders:
        with_groups = "with" if by else "without"
        raise InvalidInput(f"order={order!r} is unknown: {with_groups} group_by use {', '.join(orders)}, or - and one")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise InvalidInput(f"limit={limit!r} must be a whole number of at least 0")
    return Grouping(by, zone, order, limit)


def tokens_of(words: Any) -> tuple[tuple[str, ...], ...]:
    """Return the tokens of each word or phrase. Raises ``InvalidInput`` for one without tokens."""
    tokens: dict[tuple[str, ...], None] = {}
    for word in _few("words", words):
        found = tuple(dict.fromkeys(tokenize(word)))
        if not found:
            raise InvalidInput(f"words: {word!r} contains no word that is indexed: leave it out")
        tokens[found] = None
    return tuple(tokens)


def terms_of(terms: Any) -> tuple[str, ...]:
    """Return the keys of terms, each given by its key, or a name as it is written. Raises ``InvalidInput``."""
    keys: dict[str, None] = {}
    for name in _few("terms", terms):
        if not (key := phrase_key(name)):
            raise InvalidInput(f"terms: {name!r} contains no word: leave it out")
        keys[key] = None
    return tuple(keys)


def _few(name: str, values: Any) -> list[str]:
    """Return at most MOST_WORDS texts. Raises ``InvalidInput``."""
    texts = names_of(name, values)
    if len(texts) > MOST_WORDS:
        raise InvalidInput(f"{name} has {len(texts)} entries: use at most {MOST_WORDS}")
    for text in texts:
        require_text(name, text)
    return texts


async def query(
    store: GraphStore, scope: Scope, selection: Selection, grouping: Grouping, archived: bool
) -> QueryResult:  # fmt: skip
    """Return the counts, and the groups, notes or events.

    With ``archived``, it reads every note of the scope, because stores do not index the archive.
    """
    rows = await _rows(store, scope, selection) if archived else None
    (total,) = await store.tally(scope, selection, ()) if rows is None else tally(rows, ())
    found: dict[str, Any] = {"count": total.count, "first": _moment(total.first), "last": _moment(total.last)}
    if grouping.by:
        fields = tuple(dict.fromkeys(grouping.moment if field in _UNITS else field for field in grouping.by))
        tallies = await store.tally(scope, selection, fields) if rows is None else tally(rows, fields)
        groups = _groups(tallies, fields, grouping)
        return QueryResult(**found, groups=tuple(islice(groups, grouping.limit)), all_groups=len(groups))
    if not grouping.limit:
        return QueryResult(**found)
    if rows is None:
        ids = await store.select(scope, selection, grouping.order, grouping.limit)
    else:
        ids = ordered(rows, grouping.order)[: grouping.limit]
    if selection.of_events:
        events = await store.events(scope, ids)
        return QueryResult(**found, events=tuple(events[id] for id in ids if id in events))
    notes = await store.notes(scope, ids)
    return QueryResult(**found, notes=tuple(notes[id] for id in ids if id in notes))


async def _rows(store: GraphStore, scope: Scope, selection: Selection) -> list[Selected]:
    """Return what a selection contains if archived notes count, except merged and quarantined ones."""
    rows: list[Selected] = []

    async def add(notes: Sequence[Note]) -> None:
        ids = [id for note in notes for id in note.event_ids] if selection.of_events else []
        events: dict[str, EventRecord] = await store.events(scope, ids) if ids else {}
        rows.extend(selected(notes, events, selection))

    async for page in pages(store, scope, PAGE):
        await add(page)
    async for page in archived_pages(store, scope, PAGE):
        await add([note for note in page if note.merged_into is None and note.quarantined is None])
    return rows


def _groups(tallies: Sequence[Tally], fields: Sequence[str], grouping: Grouping) -> list[Group]:
    """Return the groups in order. Slots of one day, or of one month, are added up."""
    merged: dict[tuple[str | None, ...], Tally] = {}
    places = [fields.index(grouping.moment if field in _UNITS else field) for field in grouping.by]
    size = DAY if grouping.moment == "day" else SLOT
    unit = lru_cache(maxsize=None)(partial(_unit, size, grouping.zone))
    for each in tallies:
        values = [each.key[place] for place in places]
        key = tuple(
            unit(value, field) if field in _UNITS else value if value is None else str(value)
            for field, value in zip(grouping.by, values, strict=True)
        )
        merged[key] = _added(merged[key], each) if key in merged else each
    groups = [
        Group(
            key=dict(zip(grouping.by, key, strict=True)), count=each.count, first=_moment(each.first),
            last=_moment(each.last),
        )
        for key, each in sorted(merged.items(), key=lambda item: [(value is None, value or "") for value in item[0]])
    ]  # fmt: skip
    name, backwards = grouping.order.removeprefix("-"), grouping.order.startswith("-")
    if name == "count":
        groups.sort(key=lambda group: group.count, reverse=backwards)
    elif name == "key":
        groups = groups[::-1] if backwards else groups
    else:
        dated = [group for group in groups if group.first is not None]
        dated.sort(key=lambda group: getattr(group, name), reverse=backwards)
        groups = [*dated, *(group for group in groups if group.first is None)]
    return groups


def _unit(size: int, zone: tzinfo, number: str | int | None, unit: str) -> str | None:
    if number is None:
        return None
    moment = from_micros(int(number) * size)
    try:
        return _UNITS[unit](moment.astimezone(zone))
    except OverflowError:  # the first or last hours of the calendar
        return _UNITS[unit](moment)


def _added(one: Tally, other: Tally) -> Tally:
    firsts = [each.first for each in (one, other) if each.first is not None]
    lasts = [each.last for each in (one, other) if each.last is not None]
    return Tally(one.key, one.count + other.count, min(firsts, default=None), max(lasts, default=None))


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
