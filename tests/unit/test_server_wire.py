"""Encoding of answers and errors for HTTP without loss."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel import errors
from zettel.errors import InvalidInput, NotFound, ServerBusy, ServerError, ServerUnreachable, ZettelError
from zettel.exports.report import ExportReport
from zettel.model import (
    Cause,
    Conflict,
    Entity,
    EntityDetails,
    EntityFact,
    EntityNeighbor,
    EntityPage,
    Estimate,
    EventRecord,
    Evolved,
    Example,
    Graph,
    Group,
    Hit,
    Input,
    Job,
    JobKind,
    Kind,
    Link,
    LinkType,
    LoggedHit,
    LoggedSearch,
    NamesMerged,
    Neighbor,
    Note,
    Page,
    QueryResult,
    Remembered,
    Retention,
    Revision,
    Scope,
    Source,
    Step,
    Swept,
    Term,
    Tuned,
    Usage,
    Why,
)
from zettel.model.usage import NoteUsage, SessionSize
from zettel.remote import wire
from zettel.search.gather import Evidence, Gathered
from zettel.transcripts import Rejected
from zettel.transcripts.report import ImportReport, Secret

WHEN = datetime(2024, 5, 1, 9, 0, 0, 1, timezone.utc)
NOTE = Note(
    id="n_1", kind=Kind.SEMANTIC, content="Ann moved to Oslo.", title="Ann", keywords=("Oslo",), event_ids=("e_1",),
    occurred_at=WHEN, valid_to=WHEN, metadata={"n": 1.0, "deep": [{"a": -0.0}, 10**30]}, seq=7, recorded_at=WHEN,
)  # fmt: skip
EVENT = EventRecord(
    payload={"lone": "\ud800", "float": 2.0, "whole": 2}, source=Source(file="a.txt", position="3"), event_id="e_1",
    seq=7, recorded_at=WHEN, metadata={"tags": ["ä", None]}, revises="e_0",
)  # fmt: skip
LINK = Link(source="n_1", target="n_2", type=LinkType.SUPERSEDES, reason="later", recorded_at=WHEN)
HIT = Hit(
    note=NOTE, score=0.1 + 0.2, search_id="s_1",
    why=Why(scorer="fusion", features={"text": 1e-17}, path=(Step(kind="term", name="Oslo", note="n_2"),)),
)  # fmt: skip
REVISION = Revision(
    note="n_1", version=2, seq=8, recorded_at=WHEN, change={"tags": ["a"]}, links=(LINK,), undoes=(1,),
    cause=Cause(by="user", reason="odd"), inputs=(Input("n_2", 1),),
)  # fmt: skip
JOB = Job(id="j_1", scope=Scope(user="ann"), kind=JobKind.LINK, run_at=WHEN, error="no")
LOGGED = LoggedSearch(
    id="s_1", question="Where?", asked_at=WHEN, scorer="fusion", used=("n_1",), outcome="failure",
    hits=(LoggedHit(note="n_1", version=1, score=0.5, features={}),),
)  # fmt: skip
REPORT = ImportReport(
    file="a", format="csv", first=WHEN, estimate=Estimate("m", 1, 2, 3, 4, None), secrets_found=1,
    rejected_records=[Rejected(file="a", position="1", reason="no")],
    secrets=[Secret(**dict.fromkeys(Secret._fields, "x"))],
)  # fmt: skip

SAMPLES: dict[str, Any] = {
    "ADDED": "n_1", "ADDED_MANY": ["n_1", "n_2"], "DELETED": 3,
    "REMEMBERED": [Remembered("n_1", "added", True), Remembered(None, "deleted")],
    "HITS": [HIT], "HITS_MANY": [[HIT, HIT], []], "CONTEXT": "- Ann\n- Ben",
    "GATHERED": Gathered(text="t", evidence=(Evidence(hit=HIT, round=1, search="q", needed=True),), ended="done"),
    "SEARCHES": [LOGGED], "TUNED": Tuned(True, 1, 2, 3, 0.1, 0.2, 0.3), "PAGE": Page(notes=(NOTE,), cursor="7"),
    "NOTE": NOTE, "NOTE_OR_EVENT": EVENT, "NOTES": [NOTE], "HISTORY": [REVISION], "LINK": LINK, "LINKS": [LINK],
    "NEIGHBORS": [Neighbor(note=NOTE, hops=2, link=LINK)],
    "TERMS": [Term(key="oslo", text="Oslo", kind="name", notes=2)],
    "EVENTS": [EVENT], "GRAPH": Graph(notes=(NOTE,), links=(LINK,), cursor=None),
    "ENTITIES": EntityPage(entities=(Entity(name="Ann", kind="person", aliases=("my wife",), notes=2),), cursor="1"),
    "ENTITY": EntityDetails(
        name="Ann", merges=(NamesMerged(names=("my wife", "Ann"), by="rule", reason="r", sources=("n_1",)),),
        facts=(EntityFact(note="n_1", attribute="home", value="Oslo", text="Ann lives in Oslo.", valid_from=WHEN),),
        timeline=(NOTE,), neighbors=(EntityNeighbor(name="Oslo", kind="place", count=1, notes=("n_1",)),),
    ),
    "CONFLICTS": [Conflict(note=NOTE, other=NOTE, reason="r", recorded_at=WHEN)], "EVOLVED": Evolved(1, 2, 3, 4),
    "QUEUED": False, "JOBS": [JOB], "JOB": JOB, "RETRIED": 0, "STATS": {"notes": 1, "llm_usd": 0.25, "budget": None},
    "SCOPES": [Scope(), Scope(tenant="a", user="b", agent="c")], "RIGHT": "write", "EMBEDDED": 1, "PROBLEMS": ["odd"],
    "IMPORTED": REPORT, "ESTIMATE": Estimate("m", 1, 2, 3, 4, 0.5), "EXPORTED": ExportReport(to="-", format="jsonl"),
    "ENTRY": wire.Entry(event=EVENT, notes=(NOTE,)),
    "QUERIED": QueryResult(count=1, first=WHEN, groups=(Group(key={"day": "2024-05-01"}, count=1),), notes=(NOTE,)),
    "USAGE": Usage(
        notes=1, searches=2, reported=1, never_found=0, never_used=1, most_used=(NoteUsage(note="n_1", text="Ann"),),
        unused=(), duplicates=(("n_1", "n_2"),), contradictions=0, stale=(),
        sessions=(SessionSize(session=None, notes=1, characters=3),),
    ),
    "RETENTION": Retention(max_age=timedelta(days=1.5)), "RETENTION_SET": Retention(then="archive"), "REMOVED": True,
    "SWEPT": Swept(1, 2),
    "EXAMPLES": [Example(task="Export", steps=("clear_lock",), session="s", note="n_1", score=0.1 + 0.2)],
}  # fmt: skip
ANSWERS = {name: value for name, value in vars(wire).items() if isinstance(value, wire.ResponseType)}


def test_every_answer_type_has_a_sample() -> None:
    assert SAMPLES.keys() == ANSWERS.keys()


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_survive_a_round_trip(name: str) -> None:
    body = ANSWERS[name].encode(SAMPLES[name])
    back = ANSWERS[name].decode(body)
    assert back == SAMPLES[name]
    assert type(back) is type(SAMPLES[name])
    assert body.startswith(b"{")
    assert b"+00:00" not in body


def test_notes_and_events_are_distinguished() -> None:
    assert wire.NOTE_OR_EVENT.decode(wire.NOTE_OR_EVENT.encode(NOTE)) == NOTE


texts = st.text(st.characters(exclude_categories=()))  # lone surrogates too
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_any_payload_survives_a_round_trip(payload: Any) -> None:
    event = EVENT.model_copy(update={"payload": payload})
    back = wire.NOTE_OR_EVENT.decode(wire.NOTE_OR_EVENT.encode(event))
    assert isinstance(back, EventRecord)
    assert repr(back.payload) == repr(payload)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"hits": 3}', b'{"notes": []}', b"\xff", b"[" * 10_000])
def test_invalid_answers_raise(body: bytes) -> None:
    with pytest.raises(ServerUnreachable, match="not from a zettel server"):
        wire.HITS.decode(body)


def test_values_outside_json_are_not_sent() -> None:
    with pytest.raises(InvalidInput, match="cannot be sent as JSON"):
        wire.encode({"payload": object()})
    with pytest.raises(InvalidInput, match="cannot be sent as JSON"):
        wire.encode({"payload": "\ud800", "more": object()})
    assert wire.encode({"payload": float("nan")}) == b'{"payload":NaN}'  # the server refuses it


TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, ZettelError)]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_keeps_its_class(kind: type[ZettelError]) -> None:
    error = kind.__new__(kind)
    ZettelError.__init__(error, "it says\n why")
    back = wire.error_of(wire.status_of(error), wire.error_body(error), 3.0)
    assert type(back) is kind
    assert str(back) == "it says why"
    assert 400 <= wire.status_of(error) < 600


def test_errors_have_http_statuses() -> None:
    assert wire.status_of(NotFound("x", ["n_1"])) == 404
    assert wire.status_of(errors.InvalidEvent()) == 422
    assert wire.status_of(errors.InvalidModelItem()) == 502
    busy = wire.error_of(429, wire.error_body(errors.TooManyRequests()), 3.0)
    assert isinstance(busy, ServerBusy)
    assert busy.retry_after == 3.0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>bad gateway</html>", "status 502 and no reason"),
        (b'{"error": {"type": "Newer", "message": "m"}}', "Newer: m"),
        (b'{"error": {"type": "Iterable", "message": "m"}}', "Iterable: m"),
    ],
)
def test_errors_of_proxies_are_reported(body: bytes, message: str) -> None:
    error = wire.error_of(502, body)
    assert type(error) is ServerError
    assert message in str(error)
