"""Exact queries: every store counts, groups and orders as plain Python does over all notes and events."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zettel import Memory, Note, Scope
from zettel.errors import InvalidInput
from zettel.model import EventRecord, Group, QueryResult
from zettel.text.tokens import tokenize

pytestmark = pytest.mark.over_http

OTHER = Scope(user="somebody else")
TURNS: list[tuple[str, str | None, str | None, str | None, str, dict[str, Any]]] = [
    # speaker, role, session, time, content, metadata
    ("user", "user", "a", "2024-01-30T09:00Z", "I ran five kilometres along the harbour today.", {}),
    ("assistant", "assistant", "a", "2024-01-30T09:01Z", "Running twice a week is a fine beginning.", {}),
    ("user", "user", "a", "2024-01-31T23:40Z", "I am running to the Blue Heron tomorrow. #boat", {"team": "red"}),
    ("user", "user", "b", "2024-02-29T23:59:59Z", "I run every morning with Ida.", {}),
    ("Ann", None, "b", "2024-03-01T00:00Z", "The Blue Heron needs paint. #boat", {"team": "red"}),
    ("Ann", None, "c", "2024-12-30T12:00Z", "The Blue Heron has been painted. #boat #done", {"team": "blue"}),
    ("Ida", None, "c", None, "Nobody knows when the harbour was built.", {}),
    ("user", "user", None, "1969-07-20T20:17Z", "The day when people ran on the moon.", {}),
    ("user", "user", "c", "2025-01-01T00:30Z", "I ran home after the party with Ann and Ida.", {}),
    ("Ann", None, "c", "2025-01-02T08:00Z", "I am allergic to walnuts.", {}),
    ("Ann", None, "d", "2025-02-02T08:00Z", "I am allergic to walnuts.", {}),
]


def fill(memory: Memory) -> None:
    """Store turns, of which some are archived, deleted, quarantined, merged, superseded, or in another scope."""
    ids = [
        memory.add(content, speaker=speaker, role=role, session=session, occurred_at=time, metadata=metadata)  # type: ignore[arg-type]
        for speaker, role, session, time, content, metadata in TURNS
    ]
    memory.add("I ran away from this scope.", role="user", scope=OTHER)
    memory.add(" ".join(f"Ida counted {n} runners on the pier." for n in range(80)), speaker="Ida", session="long",
               occurred_at="2024-05-05")  # fmt: skip
    memory.archive(memory.add("I ran and it was archived.", role="user", session="a", occurred_at="2024-01-29"))
    memory.delete(memory.add("I ran and it was deleted.", role="user", session="a", occurred_at="2024-01-29"))
    memory.quarantine(memory.add("I ran in a quarantine.", role="user", session="a"), "not sure")
    memory.link(ids[5], ids[4], "supersedes", reason="it was painted")
    memory.update(ids[0], valid_to="2024-06-01")
    memory.evolve()


class Everything:
    """All notes and events of a memory, read by other methods."""

    def __init__(self, memory: Memory) -> None:
        self.notes = pages(memory, archived=False)
        archive = [note for note in pages(memory, archived=True) if not note.merged_into and note.quarantined is None]
        self.all_notes = [*self.notes, *archive]
        self.events = {event.event_id: event for event, _ in memory.dump()}


def pages(memory: Memory, archived: bool) -> list[Note]:
    notes: list[Note] = []
    cursor = None
    while True:
        page = memory.list(archived=archived, cursor=cursor, limit=7)
        notes += page.notes
        if (cursor := page.cursor) is None:
            return notes


def matching(everything: Everything, memory: Memory, of: str, query: dict[str, Any]) -> list[tuple[Any, Note]]:
    """Return the matching notes, or events, each with its note."""
    rows: list[tuple[Any, Note]] = []
    for note in everything.all_notes if query.get("archived") else everything.notes:
        words = set(tokenize(f"{note.title or ''}\n{note.content}"))
        keys = {term.key for term in memory.terms(note.id)} if query.get("terms") else set()
        fits = bool(
            (not query.get("words") or any(set(tokenize(word)) <= words for word in query["words"]))
            and (not query.get("terms") or keys & set(query["terms"]))
            and (not query.get("kinds") or note.kind.value in query["kinds"])
            and (not query.get("tags") or set(query["tags"]) & set(note.tags))
            and query.get("speaker") in (None, note.speaker)
            and query.get("role") in (None, note.role)
            and all(note.metadata.get(name) == value for name, value in query.get("filter", {}).items())
        )
        if as_of := query.get("as_of"):
            moment = datetime.fromisoformat(as_of).replace(tzinfo=timezone.utc)
            fits &= (note.valid_from is None or note.valid_from <= moment) and (
                note.valid_to is None or note.valid_to > moment
            )
        if not fits or (of == "events" and note.kind.value != "episodic"):
            continue
        items: list[Any] = [note] if of == "notes" else [everything.events[id] for id in note.event_ids]
        rows += [(item, note) for item in items if in_time(item, query)]
    return rows


def in_time(item: Any, query: dict[str, Any]) -> bool:
    since, until = (
        datetime.fromisoformat(query[name]).replace(tzinfo=timezone.utc) if query.get(name) else None
        for name in ("since", "until")
    )
    at = item.occurred_at
    return bool(
        query.get("session") in (None, item.session)
        and (since is None or (at and at >= since))
        and (until is None or (at and at < until))
    )


def keys_of(item: Any, note: Note, memory: Memory, by: list[str], tz: str | None) -> list[tuple[str | None, ...]]:
    at = item.occurred_at and item.occurred_at.astimezone(ZoneInfo(tz or "UTC"))
    single: dict[str, Any] = {
        "kind": note.kind.value, "speaker": note.speaker, "role": note.role, "session": item.session,
        "year": at and at.strftime("%Y"), "month": at and at.strftime("%Y-%m"), "week": at and at.strftime("%G-W%V"),
        "day": at and at.strftime("%Y-%m-%d"), "weekday": at and at.strftime("%A"),
    }  # fmt: skip
    keys: list[tuple[str | None, ...]] = [()]
    for field in by:
        terms = [term.key for term in memory.terms(note.id)] if field == "term" else []
        values = note.tags if field == "tag" else terms if field == "term" else [single[field]]
        keys = [(*key, value) for key in keys for value in values]
    return keys


def expected(everything: Everything, memory: Memory, of: str, query: dict[str, Any]) -> QueryResult:
    """Return the answer of plain Python, with groups in the order of their keys."""
    rows = matching(everything, memory, of, query)
    by = query.get("group_by", [])
    items: dict[tuple[str | None, ...], dict[str, Any]] = defaultdict(dict)
    for item, note in rows:
        for key in keys_of(item, note, memory, by, query.get("tz")):
            items[key][ident(item)] = item
    groups = [
        Group(key=dict(zip(by, key, strict=True)), count=len(of_key), first=first(of_key), last=last(of_key))
        for key, of_key in sorted(items.items(), key=lambda pair: [(value is None, value or "") for value in pair[0]])
    ]
    all_items = {ident(item): item for item, _ in rows}
    return QueryResult(
        count=len(all_items), first=first(all_items), last=last(all_items), groups=tuple(groups) if by else (),
        all_groups=len(groups) if by else 0,
    )  # fmt: skip


def ident(item: Note | EventRecord) -> str:
    return item.event_id if isinstance(item, EventRecord) else item.id


def first(items: dict[str, Any]) -> datetime | None:
    return min((item.occurred_at for item in items.values() if item.occurred_at), default=None)


def last(items: dict[str, Any]) -> datetime | None:
    return max((item.occurred_at for item in items.values() if item.occurred_at), default=None)


some = st.sampled_from
conditions = st.fixed_dictionaries({}, optional={
    "words": st.lists(some(["run", "ran", "blue heron", "harbour", "run ida", "walnuts"]), min_size=1, max_size=2),
    "terms": st.lists(some(["blue heron", "ida", "boat"]), min_size=1, max_size=2),
    "tags": st.lists(some(["boat", "done", "nothing"]), min_size=1, max_size=2),
    "session": some(["a", "b", "c", "long"]), "speaker": some(["user", "Ann", "Ida", "ann"]),
    "role": some(["user", "assistant", "tool"]), "filter": some([{"team": "red"}, {"team": "blue"}]),
    "since": some(["2024-01-31", "2024-03-01", "1960-01-01"]), "until": some(["2024-03-02", "2025-01-01"]),
    "as_of": some(["2024-02-01", "2024-12-31", "2030-01-01"]), "archived": st.booleans(),
})  # fmt: skip
fields = st.lists(
    some(["kind", "speaker", "role", "session", "tag", "year", "month", "week", "day", "weekday"]),
    max_size=3,
    unique=True,
)


@pytest.fixture
def filled(memory: Memory) -> tuple[Memory, Everything]:
    fill(memory)
    return memory, Everything(memory)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(of=some(["notes", "events"]), query=conditions, by=fields, tz=some([None, "Asia/Kolkata", "America/New_York"]))
def test_answers_equal_those_of_plain_python(
    filled: tuple[Memory, Everything], of: Any, query: dict[str, Any], by: list[str], tz: str | None
) -> None:
    memory, everything = filled
    query = query | ({"group_by": by, "tz": tz} if by else {})
    order: dict[str, Any] = {"order": "key"} if by else {}
    answer = memory.query(of, **query, **order)
    oracle = expected(everything, memory, of, query)
    assert answer.model_copy(update={"notes": (), "events": ()}) == oracle
    if not by:
        items = answer.notes or answer.events
        assert len({ident(item) for item in items}) == len(items) == oracle.count
        times = [item.occurred_at for item in items]
        known = [time for time in times if time is not None]
        assert times == [*sorted(known), *[None] * (len(times) - len(known))]
        backwards = memory.query(of, **query, order="-arrival", limit=2)
        newest = sorted((item.seq for item in items), reverse=True)[:2]
        assert [item.seq for item in backwards.notes or backwards.events] == newest


def test_groups_by_term_equal_those_of_plain_python(filled: tuple[Memory, Everything]) -> None:
    memory, everything = filled
    for query in ({"group_by": ["term"]}, {"group_by": ["month", "term"], "words": ["heron"]}):
        assert memory.query("events", **query, order="key", limit=999) == expected(everything, memory, "events", query)  # type: ignore[arg-type]


def test_how_many_times_is_exact(filled: tuple[Memory, Everything]) -> None:
    memory, _ = filled
    ran = memory.query("events", words=["run", "ran"], role="user", limit=1, order="-time")
    assert (ran.count, ran.events[0].content) == (5, TURNS[8][4])
    assert ran.last == ran.events[0].occurred_at
    assert memory.query("events", words=["run", "ran"], role="user", archived=True, limit=0).count == 6
    assert memory.query("events", speaker="Ida", words=["runners"], limit=0).count == 1  # one message of several notes
    assert memory.query("notes", speaker="Ida", words=["runners"], limit=0).count > 1
    assert memory.query("events", words=["walnuts"], limit=0).count == 2  # merged into one note
    assert memory.query(words=["walnuts"], kinds=["episodic"], limit=0).count == 1
    by_month = memory.query("events", words=["run", "ran"], role="user", group_by=["month"], order="-count", limit=1)
    assert by_month.all_groups == 4
    assert [(group.key, group.count) for group in by_month.groups] == [({"month": "2024-01"}, 2)]
    assert memory.query(scope=Scope(user="nobody")) == QueryResult(count=0)
    assert memory.query(scope=Scope(user="nobody"), group_by=["day"]) == QueryResult(count=0)


@pytest.mark.parametrize(
    ("query", "error_text"),
    [
        ({"of": "links"}, "links|notes, events|'notes' or 'events'"),
        ({"of": "events", "kinds": ["semantic"]}, "kinds= selects notes"),
        ({"words": ["the"]}, "no word that is indexed"),
        ({"terms": ["?!"]}, "contains no word"),
        ({"group_by": ["mood"]}, "group_by='mood' is not a field: use kind, speaker"),
        ({"group_by": ["tag", "term"]}, "not both"),
        ({"words": ["run"] * 21}, "at most 20"),
        ({"order": "-count"}, "without group_by use time, arrival"),
        ({"group_by": ["day"], "order": "time"}, "with group_by use count, key, first, last"),
        ({"limit": -1}, "limit"),
        ({"tz": "Mars/Base"}, "unknown time zone"),
        ({"since": "2024"}, "not a time"),
        ({"role": "captain"}, "role"),
    ],
)
def test_invalid_queries_are_one_clear_line(memory: Memory, query: dict[str, Any], error_text: str) -> None:
    with pytest.raises(InvalidInput, match=error_text) as error:
        memory.query(**query)
    assert "\n" not in str(error.value)
