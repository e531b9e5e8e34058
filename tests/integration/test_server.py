"""The HTTP server over real sockets: its routes, keys, limits and errors."""

from __future__ import annotations

import io
import json
import logging
import socket
import time
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.contract.transfer_helpers import sealed
from tests.http_server import PATIENCE, QUICK, Asker, Served, served
from zettel import Scope
from zettel.remote import wire
from zettel.server.gate import REFUSED
from zettel.server.limits import Limits
from zettel.server.public_paths import page_files

pytestmark = pytest.mark.integration

ANN, BOB = Scope(user="ann"), Scope(tenant="acme", user="bob")
SECRET = "Kestrelwood"
"""A word in content that only bob may see, and in no log."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server") / "a.db", limits=QUICK._replace(body=2**21)) as running:
        yield running


@pytest.fixture(scope="module")
def ann(server: Served) -> Asker:
    return server.asker(server.key("ann", ANN))


@pytest.fixture(scope="module")
def bob(server: Served) -> Asker:
    asker = server.asker(server.key("bob", BOB))
    assert asker("POST", "/v1/events", {"content": f"The safe of {SECRET} is green."}).status == 200
    return asker


@pytest.fixture(scope="module")
def records(server: Served) -> list[dict[str, Any]]:
    """Return the exported records of a scope with one note, without the first and last line."""
    fay = server.asker(server.key("fay", Scope(user="fay")))
    fay("POST", "/v1/events", {"content": "Fay paints.", "wait": True})
    lines = [json.loads(line) for line in fay("GET", "/v1/export?format=zettel").body.splitlines()[1:-1]]
    return [{name: record[name] for name in record if name != "crc"} for record in lines]


class TestWholeMemories:
    @pytest.mark.parametrize("changed", [{"note": None}, {"kind": "purge"}, {"kind": "reembed"}])
    def test_an_imported_job_for_the_whole_store_is_refused(
        self, server: Served, records: list[dict[str, Any]], changed: dict[str, Any]
    ) -> None:
        job = {
            "kind": "embed", "note": "n_1", "version": 1, "priority": 0, "run_at": "2024-05-01T09:00:00Z",
            "attempts": 0, "state": "queued", "error": None,
        }  # fmt: skip
        gus = server.asker(server.key(f"gus {changed}", Scope(user="gus")))
        answer = gus("POST", "/v1/import?name=mine", sealed([*records, {"job": job | changed}]))
        assert answer.error.startswith("BadRecord: mine:")
        assert "concerns a store, not a note" in answer.error
        assert gus("GET", "/v1/scopes").body == {"scopes": []}

    def test_imported_vectors_have_the_dimension_of_their_set(
        self, server: Served, records: list[dict[str, Any]]
    ) -> None:
        hal = server.asker(server.key("hal", Scope(user="hal")))
        short = [record | {"vectors": {"1": "AAAAAA=="}} if "note" in record else record for record in records]
        error = hal("POST", "/v1/import", sealed(short)).error
        assert "a vector of 1 numbers in a set of " in error
        smaller = [
            {"vectors": record["vectors"] | {"dim": 1}} if list(record) == ["vectors"] else record for record in short
        ]
        assert hal("POST", "/v1/import", sealed(smaller)).body["added"] == 1
        hits = hal("POST", "/v1/search", {"question": "Who paints?"}).body["hits"]
        assert hits[0]["note"]["content"] == "Fay paints."


class TestEvents:
    def test_an_event_can_be_added_found_changed_and_reverted(self, ann: Asker) -> None:
        event = {
            "content": "Ann moved to Oslo.", "speaker": "Ann", "occurred_at": "2024-05-01T09:00:00Z", "session": "s1",
            "payload": {"a": [1, 2.5, None, "\ud800", 10**30]}, "metadata": {"project": "move"}, "wait": True,
        }  # fmt: skip
        id = ann("POST", "/v1/events", event).body["id"]
        hits = ann("POST", "/v1/search", {"question": "Where does Ann live?", "k": 1, "explain": True}).body["hits"]
        assert hits[0]["note"]["id"] == id
        assert hits[0]["why"]["scorer"] == "fusion"
        note = wire.NOTE.decode(wire.encode(hits[0]["note"]))
        record = ann("GET", f"/v1/notes/{note.event_ids[0]}").body
        assert record["payload"] == event["payload"]
        assert record["occurred_at"] == "2024-05-01T09:00:00Z"
        feedback = ann("POST", "/v1/feedback", {"search_id": hits[0]["search_id"], "used": [id], "outcome": "success"})
        assert feedback.status == 204
        assert ann("GET", "/v1/searches").body["searches"][-1]["used"] == [id]
        changed = ann("PATCH", f"/v1/notes/{id}", {"tags": ["home"], "title": None}).body
        assert changed["tags"] == ["home"]
        revisions = ann("GET", f"/v1/notes/{id}/history").body["revisions"]
        assert revisions[-1]["change"]["tags"] == ["home"]
        assert ann("POST", f"/v1/notes/{id}/revert", {"version": 1}).body["tags"] != ["home"]
        assert ann("GET", "/v1/notes?filter=%7B%22project%22:%22move%22%7D").body["notes"][0]["id"] == id
        assert ann("POST", f"/v1/notes/{id}/archive").body["archived"] is True
        assert ann("POST", f"/v1/notes/{id}/unarchive").body["archived"] is False
        assert ann("POST", f"/v1/notes/{id}/quarantine", {"reason": "odd"}).body["notes"][0]["quarantined"] == "odd"
        assert ann("POST", f"/v1/notes/{id}/release").body["notes"][0]["quarantined"] is None
        assert ann("POST", f"/v1/notes/{id}/revert-effects").body == {"notes": []}

    def test_batches_links_and_contexts(self, ann: Asker) -> None:
        batch = [{"id": f"b{n}", "content": f"Kettle {n} stands on shelf {n}."} for n in range(3)]
        ids = ann("POST", "/v1/events/batch", {"events": batch, "wait": True}).body["ids"]
        assert len(set(ids)) == 3
        done = ann("POST", "/v1/events/report", {"events": batch}).body["events"]
        assert done == [{"id": id, "status": "existing", "flagged": False, "secrets": []} for id in ids]
        hits = ann("POST", "/v1/search/batch", {"questions": ["kettle 1", "kettle 2"], "k": 1}).body["hits"]
        assert [entry[0]["note"]["id"] for entry in hits] == ids[1:]
        link = ann("POST", "/v1/links", {"source": ids[0], "target": ids[1], "reason": "both"}).body
        assert link["type"] == "RELATES"
        assert link in ann("GET", f"/v1/notes/{ids[1]}/links").body["links"]
        neighbors = ann("GET", f"/v1/notes/{ids[0]}/neighbors?hops=1").body["neighbors"]
        assert ids[1] in {entry["note"]["id"] for entry in neighbors}
        assert ann("GET", f"/v1/notes/{ids[0]}/terms").body["terms"]
        assert "Kettle 2" in ann("POST", "/v1/context", {"question": "kettle 2", "max_tokens": 100}).body["context"]
        gathered = ann("POST", "/v1/answer-context", {"question": "kettle 2", "rounds": 2}).body
        assert gathered["evidence"][0]["hit"]["note"]["content"].startswith("Kettle 2")
        first = ann("GET", "/v1/notes?limit=1").body
        assert ann("GET", f"/v1/notes?limit=1&cursor={first['cursor']}").body["notes"] != first["notes"]

    def test_maintenance_routes(self, ann: Asker) -> None:
        assert ann("POST", "/v1/flush", {"timeout": 30}).status == 204
        assert set(ann("POST", "/v1/evolve").body) == {"revised", "merged", "insights", "archived"}
        assert ann("POST", "/v1/evolve", {"wait": False}).status == 202
        assert ann("POST", "/v1/flush").status == 204
        assert ann("GET", "/v1/jobs").body == {"jobs": []}
        assert ann("POST", "/v1/jobs/retry").body == {"retried": 0}
        assert ann("POST", "/v1/jobs/j_0/cancel").status == 404
        assert ann("GET", "/v1/conflicts").body == {"conflicts": []}
        assert ann("GET", "/v1/stats").body["store"] == "embedded"

    def test_files_can_be_imported_and_exported(self, server: Served) -> None:
        carl = server.asker(server.key("carl", Scope(user="carl")))
        chat = b"[2024-05-01 09:00] Ann: The piano is in the hall.\n[2024-05-01 09:01] Ben: Which hall?\n"
        report = carl("POST", "/v1/import?name=..%2F..%2Fchat.txt&dry_run=true", chat).body
        assert (report["added"], report["dry_run"], report["file"]) == (2, True, "../../chat.txt")
        mapped = "map_user=%7B%22Ben%22:%22Benjamin%22%7D"
        assert carl("POST", f"/v1/import?name=chat.txt&{mapped}", chat).body["added"] == 2
        exported = carl("GET", "/v1/export")
        assert [json.loads(line)["speaker"] for line in exported.body.splitlines()] == ["Ann", "Benjamin"]
        assert wire.EXPORTED.decode(exported.headers[wire.EXPORT_HEADER.lower()].encode()).events == 2
        dumped = [wire.ENTRY.decode(line) for line in carl("GET", "/v1/dump").body.splitlines()]
        assert [entry.event.speaker for entry in dumped] == ["Ann", "Benjamin"]
        export = carl("GET", "/v1/export?format=zettel").body
        dora = server.asker(server.key("dora", Scope(user="dora")))
        assert dora("POST", "/v1/import?format=zettel", export).body["added"] == 2
        assert dora("POST", "/v1/import?format=zettel", export).body["existing"] == 2
        assert "UnknownFormat" in carl("GET", "/v1/export?format=docx").error
        assert "is a folder" in carl("GET", "/v1/export?format=markdown").error
        assert "scope_by= needs a key for all scopes" in carl("POST", "/v1/import?scope_by=user", chat).error

    def test_notes_sessions_and_scopes_can_be_deleted(self, server: Served) -> None:
        eve = server.asker(server.key("eve", Scope(user="eve")))
        for n in range(3):
            eve("POST", "/v1/events", {"content": f"It rained, {n}.", "session": f"s{n}"})
        (note, *_) = eve("GET", "/v1/notes").body["notes"]
        assert eve("DELETE", f"/v1/notes/{note['id']}").body == {"deleted": 1}
        assert eve("GET", f"/v1/notes/{note['id']}").status == 404
        assert eve("DELETE", "/v1/events?session=s1").body == {"deleted": 1}
        assert "a source or a session" in eve("DELETE", "/v1/events").error
        assert eve("DELETE", "/v1/scope").body == {"deleted": 1}
        assert eve("GET", "/v1/notes").body["notes"] == []


class TestKeys:
    def test_missing_wrong_revoked_and_expired_keys_get_the_same_answer(self, server: Served) -> None:
        revoked = server.key("revoked", ANN)
        asker = server.asker(revoked)
        assert asker("GET", "/v1/notes").status == 200
        assert server.keys is not None
        server.keys.revoke("revoked")
        soon = datetime.now(timezone.utc) + timedelta(seconds=0.3)
        expired = server.asker(server.key("expired", ANN, expires=soon))
        time.sleep(0.4)
        wrong = server.asker("zk_000000000000_" + "A" * 43)
        answers = [asker("GET", "/v1/notes"), expired("GET", "/v1/notes"), wrong("GET", "/v1/notes")]
        answers += [server.asker()("GET", "/v1/notes"), server.asker()("GET", "/metrics")]
        answers += [server.asker()("GET", "/v1/notes", authorization=f"Basic {revoked}")]
        answers += [server.asker()("GET", "/v1/nothing"), server.asker("zk_\xff")("GET", "/v1/notes")]
        assert "ZETTEL_KEY" in REFUSED
        assert {(answer.status, answer.error, answer.headers["www-authenticate"]) for answer in answers} == {
            (401, f"InvalidKey: {REFUSED}", "Bearer")
        }

    def test_existing_and_unknown_scopes_are_refused_alike(self, ann: Asker, bob: Asker) -> None:
        assert SECRET in str(bob("POST", "/v1/search", {"question": "safe"}).body)
        existing = ann("POST", "/v1/search?tenant=acme&user=bob", {"question": "safe"})
        unknown = ann("POST", "/v1/search?tenant=acme&user=bobby", {"question": "safe"})
        assert (existing.status, unknown.status) == (403, 403)
        assert existing.error.replace("bob", "") == unknown.error.replace("bobby", "")
        assert ann("GET", "/v1/notes?user=ann").status == 200
        assert ann("GET", "/v1/scopes").body["scopes"] == [ANN.model_dump()]
        for path in ("/v1/notes?user=bob&user=ann", "/v1/notes?usr=ann"):
            assert ann("GET", path).status == 422

    def test_keys_for_several_and_all_scopes(self, server: Served, ann: Asker, bob: Asker) -> None:
        both = server.asker(server.key("both", ANN, BOB))
        assert "name one" in both("GET", "/v1/notes").error
        assert {Scope(**scope) for scope in both("GET", "/v1/scopes").body["scopes"]} == {ANN, BOB}
        assert both("GET", "/v1/scopes?user=eve").status == 403
        assert both("GET", "/v1/notes?user=ann").status == 200
        assert both("GET", "/v1/notes?user=eve").status == 403
        admin = server.asker(server.key("every"))
        assert SECRET in str(admin("GET", "/v1/notes?tenant=acme&user=bob").body)
        assert admin("GET", "/v1/notes").body["notes"] == []
        scopes = admin("GET", "/v1/scopes").body["scopes"]
        assert {ANN, BOB} <= {Scope(**scope) for scope in scopes}
        assert admin("GET", "/v1/stats").body["scopes"] == len(scopes)
        assert admin("POST", "/v1/check").body == {"problems": []}
        assert admin("POST", "/v1/reembed").body == {"embedded": 0}

    @pytest.mark.parametrize(
        ("right", "refused"),
        [
            ("read", [("POST", "/v1/events", {"content": "x"}), ("POST", "/v1/flush", {}), ("POST", "/v1/evolve", {})]),
            ("write", [("DELETE", "/v1/notes/n_0", None), ("DELETE", "/v1/scope", None), ("POST", "/v1/check", {}),
                       ("POST", "/v1/jobs/j_0/cancel", None), ("POST", "/v1/import?format=zettel", b"{}"),
                       ("POST", "/v1/import", b'{"zettel":{"version":2}}')]),
            ("admin", [("POST", "/v1/check", {}), ("POST", "/v1/reembed", None)]),
        ],
    )  # fmt: skip
    def test_a_key_allows_only_its_right(self, server: Served, right: Any, refused: list[tuple[str, str, Any]]) -> None:
        asker = server.asker(server.key(f"right to {right}", ANN, right=right))
        assert asker("POST", "/v1/search", {"question": "Oslo"}).status == 200
        for method, path, body in refused:
            assert asker(method, path, body).error.startswith("PermissionDenied: ")
        export = asker("GET", "/v1/export?format=zettel")
        assert export.status == (200 if right == "admin" else 403)


class TestWrongRequests:
    @pytest.mark.parametrize(
        ("method", "path", "body", "status", "error_text"),
        [
            ("POST", "/v1/search", b"{question", 400, "the body is not valid JSON"),
            ("POST", "/v1/search", b'{"question": "a', 400, "the body is not valid JSON"),
            ("POST", "/v1/search", b"[" * 100_000, 413, "the body is nested more than 110 levels"),
            ("POST", "/v1/search", b'"x"', 422, "body: "),
            ("POST", "/v1/search", {}, 422, "question: "),
            ("POST", "/v1/search", {"question": " "}, 422, "the question is empty"),
            ("POST", "/v1/search", {"question": "x", "qustion": "y"}, 422, "qustion: unknown field"),
            ("POST", "/v1/search", {"question": "x", "k": "ten"}, 422, "k: "),
            ("POST", "/v1/search", {"question": "x", "k": 0}, 422, "k=0 must be 1 or more"),
            ("POST", "/v1/search", {"question": "x", "as_of": "yesterday"}, 422, "as_of='yesterday' is not a time"),
            ("POST", "/v1/search", {"question": "x", "kinds": ["nix"]}, 422, "'nix' is not a valid Kind"),
            ("POST", "/v1/search", {"question": "x", "scorer": "decoder:../.."}, 422, "has no folder of tuned scorers"),
            ("POST", "/v1/search", {"question": "x", "scorer": "cross-encoder:/etc"}, 422, "unknown scorer"),
            ("POST", "/v1/tune", {"into": "x"}, 422, "has no folder of tuned scorers"),
            ("POST", "/v1/events", {"content": "x", "spaeker": "y"}, 422, "spaeker: unknown field"),
            ("POST", "/v1/events", {}, 422, "the event is empty"),
            ("POST", "/v1/events", {"content": "x" * 1_100_000}, 422, "split it into several events"),
            ("POST", "/v1/events", b'{"content": "x", "payload": NaN}', 422, "which is not a JSON value"),
            ("POST", "/v1/events", b'{"content": "x", "payload": ' + b"9" * 5000 + b"}", 400, ""),
            ("POST", "/v1/events", {"content": "x", "occurred_at": "soon"}, 422, "occurred_at: "),
            ("POST", "/v1/events", {"content": "x\0"}, 422, "NUL"),
            ("POST", "/v1/events/batch", {"events": [{"content": "x"}, {"contnt": "y"}]}, 422, "events.1.contnt: "),
            ("PATCH", "/v1/notes/n_0", {"seq": 3}, 422, "seq: unknown field"),
            ("PATCH", "/v1/notes/n_0", {}, 422, "name what to set"),
            ("GET", "/v1/notes/n_0", None, 404, "is not in user='ann'"),
            ("GET", "/v1/notes?limit=many", None, 422, "limit: "),
            ("GET", "/v1/notes?cursor=x", None, 422, "'x' is not a cursor"),
            ("GET", f"/v1/notes?cursor={'9' * 5000}", None, 422, "is not a cursor"),
            ("GET", "/v1/notes?filter=%5B%5D", None, 422, "filter: expected a JSON object"),
            ("GET", "/v1/notes?user=%00", None, 422, "user: contains a NUL character"),
            ("GET", "/v1/nothing", None, 404, "unknown path /v1/nothing"),
            ("PUT", "/v1/notes", {}, 405, "/v1/notes does not accept PUT"),
            ("GET", "/v1/search", None, 405, "/v1/search does not accept GET"),
            ("POST", "/v1/tune", {"into": "x", "scopes": [{"nope": "x"}]}, 422, "scopes.0: Scope has no part"),
            ("POST", "/v1/import?map_user=%7B%22a%22:%7B%7D%7D", b"x", 422, "map_user: the value of"),
            ("POST", "/v1/import?columns=%7B%22content%22:1%7D", b"x", 422, "columns: the value of"),
            ("GET", "/metrics", None, 403, "metrics cover all scopes"),
            ("GET", "/metrics%0A", None, 404, "unknown path /metrics%0A"),
            ("GET", "/v1/notes/%FF", None, 422, "id: is not percent-encoded UTF-8"),
            ("GET", "/v1/notes/boats/heron", None, 404, "unknown path /v1/notes/boats/heron"),
            ("GET", "/v1/notes/boats%2Fheron", None, 404, "'boats/heron' is not in user='ann'"),
            ("POST", "/v1/import?format=docx", b"x", 422, "docx"),
            ("POST", "/v1/import", b"", 422, ""),
            ("POST", "/v1/import/estimate", b"x", 403, "all scopes"),
        ],
    )  # fmt: skip
    def test_errors_are_one_line(
        self, ann: Asker, method: str, path: str, body: Any, status: int, error_text: str
    ) -> None:
        headers = {"content_type": "application/json"} if isinstance(body, bytes) else {}
        answer = ann(method, path, body, **headers)
        assert (answer.status, error_text in answer.error) == (status, True), answer

    def test_json_requires_its_content_type(self, ann: Asker) -> None:
        answer = ann("POST", "/v1/search", b'{"question": "x"}', content_type="text/plain")
        assert answer.error == "InvalidInput: the body must be a JSON object: send it as application/json"

    def test_a_known_id_with_other_content_is_a_conflict(self, ann: Asker) -> None:
        assert ann("POST", "/v1/events", {"id": "same", "content": "It is red."}).status == 200
        assert ann("POST", "/v1/events", {"id": "same", "content": "It is blue."}).status == 409
        id = ann("POST", "/v1/events", {"id": "same", "content": "It is blue.", "on_conflict": "revise"}).body["id"]
        ann("DELETE", f"/v1/notes/{id}")
        assert ann("POST", "/v1/events", {"id": "same", "content": "It is red."}).status == 410


class TestLimits:
    def test_a_large_body_is_refused(self, server: Served, ann: Asker) -> None:
        answer = server.asker(server.key("large", ANN))("POST", "/v1/events", {"content": "x" * 2**21})
        assert answer.status == 413
        key = server.key("chunked", ANN)
        head = f"POST /v1/search HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        head += "transfer-encoding: chunked\r\n\r\n"
        chunk = b"100000\r\n" + b" " * 2**20 + b"\r\n"
        assert raw_answer(server, head.encode(), *[chunk] * 4).startswith(b"HTTP/1.1 413 ")
        assert raw_answer(server, head.encode().replace(key.encode(), b"zk_"), chunk).startswith(b"HTTP/1.1 401 ")
        assert server.asker()("POST", "/health", b"x").status == 413, "a path without a key accepts no body"
        assert raw_answer(server, head.encode().replace(b"/v1/search", b"/"), chunk).startswith(b"HTTP/1.1 413 ")

    def test_the_rate_limit_is_per_key(self, tmp_path: Path) -> None:
        with served(tmp_path / "a.db", limits=Limits(rate=2.0)) as server:
            limited, unlimited = (server.asker(server.key(name, ANN)) for name in ("one", "other"))
            answers = [limited("GET", "/v1/jobs") for _ in range(8)]
            assert [answer.status for answer in answers[:4]] == [200] * 4
            refused = next(answer for answer in answers if answer.status == 429)
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.error == "TooManyRequests: more than 2 requests a second: retry later"
            assert unlimited("GET", "/v1/jobs").status == 200
            time.sleep(1.1)
            assert limited("GET", "/v1/jobs").status == 200

    def test_slow_and_concurrent_requests_are_limited(self, tmp_path: Path) -> None:
        limits = Limits(rate=0, at_once=1, head_seconds=0.5, body_seconds=0.5)
        with served(tmp_path / "a.db", limits=limits) as server:
            assert raw_answer(server, b"GET /health HTTP/1.1\r\nhost:").startswith(b"HTTP/1.1 408 ")
            assert raw_answer(server).startswith(b"HTTP/1.1 408 ")
            head = f"POST /v1/search HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key('ann', ANN)}\r\n"
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as slow:
                slow.sendall(f"{head}content-length: 30\r\n\r\n".encode() + b'{"question"')
                time.sleep(0.1)
                full = server.asker(server.key("full"))("GET", "/v1/jobs")
                assert (full.status, full.headers["retry-after"]) == (503, "1")
                assert server.asker()("GET", "/health").status == 200
                assert read_all(slow).startswith(b"HTTP/1.1 408 ")
            importing = head.replace("/v1/search", "/v1/import") + "content-length: 30\r\n\r\nAnn:"
            assert raw_answer(server, importing.encode()).startswith(b"HTTP/1.1 408 ")
            assert server.asker(server.key("after"))("GET", "/v1/jobs").status == 200


def test_disconnecting_clients_leave_nothing_behind(server: Served, ann: Asker) -> None:
    key = server.key("leaving", ANN)
    head = f"HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    for request in (
        f"POST /v1/events {head}content-length: 300\r\n\r\n" + '{"content": "half',
        f"POST /v1/import {head}content-length: 300\r\n\r\nAnn: half a",
        f'POST /v1/search {head}content-length: 17\r\n\r\n{{"question": "x"}}',
        f"GET /v1/dump {head}\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as leaving:
            leaving.sendall(request.encode())
    assert ann("GET", "/health").status == 200
    admin = server.asker(server.key("looks on"))
    deadline = time.monotonic() + PATIENCE
    while b"zettel_http_requests_active 1.0" not in admin("GET", "/metrics").body:
        assert time.monotonic() < deadline, "a request of a client that left is still under way"
    page = admin("GET", "/metrics").body
    assert b'method="POST",route="other",status="gone"' in page
    assert b'method="POST",route="/v1/import",status="gone"' in page
    assert b'route="/v1/import",status="500"' not in page
    assert "half" not in str(ann("GET", "/v1/notes").body)


class TestDisclosure:
    def test_import_errors_contain_no_server_path(self, ann: Asker) -> None:
        error = ann("POST", "/v1/import?format=zettel&name=mine.zip", b'{"zettel":{}}').error
        assert error.startswith("BadRecord: mine.zip:1: ")

    def test_a_zip_that_unpacks_beyond_the_limit_is_refused(self, tmp_path: Path) -> None:
        limits = Limits(rate=0, upload=100_000)
        with served(tmp_path / "a.db", limits=limits) as server:
            ann = server.asker(server.key("ann", ANN))
            for size, status in ((90_000, 200), (110_000, 413)):
                packed = io.BytesIO()
                with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                    for n in range(4):
                        archive.writestr(f"{n}.md", "It is in the left cupboard. ".ljust(size))
                answer = ann("POST", "/v1/import?name=notes.zip", packed.getvalue())
                assert answer.status == status
            assert answer.error.startswith("TooLarge: notes.zip unpacks to more than the limit of 400,000 bytes")

    def test_a_key_reads_more_scopes_than_it_writes(self, tmp_path: Path) -> None:
        team, bob = Scope(tenant="acme"), Scope(tenant="acme", user="bob")
        ann = Scope(tenant="acme", user="ann")
        everyone = Scope(tenant="acme", user="*")
        with served(tmp_path / "shared.db") as server:
            admin = server.asker(server.key("admin"))
            for scope, text in ((team, "The pier is closed."), (bob, "Bob moors at the pier."), (ann, "Ann's pier.")):
                query = "&".join(f"{name}={part}" for name, part in scope.model_dump(exclude_none=True).items())
                assert admin("POST", f"/v1/events?{query}", {"content": text}).status == 200
            key = server.asker(server.key("ann", ann, right="write", reads=[team]))
            scopes = [{"tenant": "acme", "user": "ann"}, {"tenant": "acme"}]
            found = key("POST", "/v1/search", {"question": "pier", "scopes": scopes}).body["hits"]
            assert {hit["note"]["content"] for hit in found} == {"The pier is closed.", "Ann's pier."}
            assert key("POST", "/v1/search?tenant=acme", {"question": "pier"}).status == 200
            assert key("POST", "/v1/events?tenant=acme", {"content": "The pier is open."}).status == 403
            owner = server.asker(server.key("owner", ann, reads=[team]))
            assert owner("GET", "/v1/export?format=zettel").status == 200
            refused = owner("GET", "/v1/export?format=zettel&tenant=acme")
            assert (refused.status, refused.error) == (403, "PermissionDenied: this key only reads tenant='acme'")
            others = [*scopes, {"tenant": "acme", "user": "bob"}]
            assert key("POST", "/v1/search", {"question": "pier", "scopes": others}).status == 403
            assert [scope.get("user") for scope in key("GET", "/v1/scopes").body["scopes"]] == [None, "ann"]
            own, shared = key("GET", "/v1/right").body, key("GET", "/v1/right?tenant=acme").body
            assert (own, shared) == ({"right": "write"}, {"right": "read"})
            assert key("GET", "/v1/right?tenant=acme&user=bob").status == 403
            assert admin("GET", "/v1/right?tenant=acme").body == {"right": "admin"}
            every = server.asker(server.key("every", everyone, right="read"))
            assert every("POST", "/v1/search?tenant=acme&user=bob", {"question": "pier"}).status == 200
            assert every("POST", "/v1/search?tenant=acme", {"question": "pier"}).status == 403
            assert every("POST", "/v1/search?tenant=other&user=bob", {"question": "pier"}).status == 403
            assert "several scopes" in every("POST", "/v1/search", {"question": "pier"}).error

    def test_no_request_downloads_a_model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("torch")
        pytest.importorskip("huggingface_hub")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr("zettel.llm.model_hub.download", lambda name: pytest.fail(f"{name} is fetched"))
        with served(tmp_path / "a.db", scorers=tmp_path / "scorers") as server:
            ann = server.asker(server.key("reader", ANN, right="read"))
            refused = ann("POST", "/v1/search", {"question": "x", "scorer": "cross-encoder"})
            assert (refused.status, "has no cross-encoder" in refused.error) == (422, True)
            refused = ann("POST", "/v1/search", {"question": "x", "scorer": "decoder:nix"})
            assert refused.status == 422
            assert refused.error == "InvalidInput: unknown tuned scorer 'nix': create it with /v1/tune"
            (tmp_path / "scorers" / ANN.key / "nix").mkdir(parents=True)
            refused = ann("POST", "/v1/search", {"question": "x", "scorer": "decoder:nix"})
            assert "does not contain a memory decoder" in refused.error
            assert str(tmp_path) not in refused.error

    def test_health_readiness_and_openapi_need_no_key(self, server: Served) -> None:
        nobody = server.asker()
        assert nobody("GET", "/metrics%0A").status == 401
        assert nobody("POST", "/openapi.json").status == 405
        assert server.asker(server.key("asks wrongly"))("PUT", "/v1/events").headers["allow"] == "DELETE, GET, POST"
        assert nobody("GET", "/health").body == {"status": "ok"}
        assert nobody("GET", "/ready").body == {"status": "ok"}
        description = nobody("GET", "/openapi.json").body
        assert description["paths"]["/v1/search"]["post"]["security"] == [{"key": []}]
        assert "security" not in description["paths"]["/health"]["get"]

    def test_the_page_needs_no_key_and_loads_nothing_foreign(self, server: Served, ann: Asker) -> None:
        page = server.asker()("GET", "/")
        assert page.status == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert all(server.asker()("GET", f"/{name}").status == 200 for name in page_files())
        assert server.asker()("GET", "/../server/app.py").status == 401
        assert ann("GET", "/../server/app.py").status == 404
        assert ann("GET", "/v1/notes").headers["cache-control"] == "no-store"

    def test_metrics_and_logs_contain_no_content_question_or_scope(
        self, server: Served, bob: Asker, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "zettel.server"):
            bob("POST", "/v1/search", {"question": SECRET})
            bob("GET", f"/v1/notes/{SECRET}?user={SECRET}")
            refused = bob(SECRET, f"/{SECRET}").status
            bob("GET", "/health")  # the previous request is logged by now
        log = [record.fields for record in caplog.records if hasattr(record, "fields")]
        log = [
            fields for fields in log if fields["key"] != "ann"
        ]  # a request of the previous test, logged after its answer
        assert [(fields["method"], fields["route"], fields["status"], fields["key"]) for fields in log[:3]] == [
            ("POST", "/v1/search", 200, "bob"),
            ("GET", "/v1/notes/{id}", 403, "bob"),
            ("other", "other", refused, "bob"),
        ]
        page = server.asker(server.key("scrapes"))("GET", "/metrics").body.decode()
        assert 'zettel_http_requests_total{method="POST",route="/v1/search",status="200"}' in page
        assert not any(word in page + str(log) for word in (SECRET, "acme", "ann", "n_"))


class TestWithoutKeys:
    def test_local_programs_are_accepted_and_foreign_pages_refused(self, tmp_path: Path) -> None:
        with served(tmp_path / "a.db", keyed=False) as server:
            client = server.asker()
            assert client("POST", "/v1/events?user=ann", {"content": "Ann sings."}).status == 200
            assert client("GET", "/v1/scopes").body["scopes"] == [ANN.model_dump()]
            assert client("GET", "/v1/notes", host="evil.example").status == 403
            assert client("GET", "/v1/notes", origin="https://evil.example").status == 403
            for origin in (f"http://127.0.0.1:{server.port + 1}", f"http://localhost:{server.port}", "null"):
                assert client("GET", "/v1/notes", origin=origin).status == 403, "pages of other servers here"
            assert client("GET", "/v1/notes", origin=server.url).status == 200
            assert client("GET", "/v1/notes", host="localhost").status == 200


def raw_answer(server: Served, *parts: bytes) -> bytes:
    """Send bytes and return the answer until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as raw:
        try:
            for part in parts:
                raw.sendall(part)
        except OSError:  # refused before everything was sent
            pass
        return read_all(raw)


def read_all(raw: socket.socket) -> bytes:
    """Return all bytes until the other side closes."""
    received = b""
    try:
        while part := raw.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received
