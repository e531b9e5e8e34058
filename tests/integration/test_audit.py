"""The audit log of a memory and of a server: who did what, without content, and nothing without a record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import QUICK, served
from tests.integration.command import Zettel
from tests.secret_samples import SAMPLES
from zettel import Memory, Scope, acting_as
from zettel.errors import AuditError, NotFound, StoreError
from zettel.local.audit_log import AuditLog, read, verify
from zettel.local.auditing import EVERY_SCOPE, READS, STREAMED
from zettel.local.backend import OPERATIONS, REPORTED, WHOLE_STORE
from zettel.remote.routes import ROUTES
from zettel.server.refusals import MOST

pytestmark = pytest.mark.integration

ANN = Scope(user="ann")
SECRET_WORD = "Kestrelwood"
QUESTION_WORD = "Heronshire"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def records(path: Path, operation: str) -> list[dict[str, Any]]:
    return [record for record in read(path) if record["op"] == operation]


def test_reads_are_those_that_a_key_for_reading_may_do() -> None:
    reads = {name for name, route in ROUTES.items() if route.right == "read"} & OPERATIONS.keys()
    assert {REPORTED.get(name, name) for name in reads} | {"cypher", "estimate_import"} == READS
    assert STREAMED < READS
    assert WHOLE_STORE < EVERY_SCOPE


def test_who_read_wrote_and_deleted_what(tmp_path: Path, path: Path) -> None:
    with Memory(tmp_path / "a.db", scope=ANN, audit=path) as memory:
        with acting_as("slack:eve", label="Eve"):
            id = memory.add(f"The safe of {SECRET_WORD} is green.", session="s1", metadata={"x": SECRET_WORD})
        memory.update(id, tags=[SECRET_WORD])
        hit = memory.search(f"Which colour has the safe in {QUESTION_WORD}?")[0]
        assert memory.context(f"the safe in {QUESTION_WORD}")
        memory.session_context("s1")
        memory.search("safe", scopes=iter([ANN, Scope(user="bob")]))
        event = memory.get(id).event_ids[0]  # type: ignore[union-attr]
        with pytest.raises(NotFound):
            memory.get("n_9")
        assert len([*memory.dump()]) == 1
        memory.stats()
        memory.delete(session="s1")
        memory.delete_scope()
    before, after = records(path, "add")
    assert before == before | {"result": "begun", "who": "slack:eve", "name": "Eve", "scope": {"user": "ann"}}
    assert after == after | {"result": "ok", "call": before["call"], "ids": [id], "count": 1, "who": "slack:eve"}
    assert records(path, "update")[1]["of"] == {"id": id}
    assert records(path, "search")[0]["ids"] == [hit.note.id] == [id]
    assert records(path, "search")[1]["scopes"] == [{"user": "ann"}, {"user": "bob"}]
    assert "call" not in records(path, "search")[0]
    assert records(path, "context")[0]["ids"] == [id]
    assert records(path, "session_context")[0] | {"ids": [event], "of": {"session": "s1"}} == (
        records(path, "session_context")[0]
    )
    assert [record["result"] for record in records(path, "get")] == ["ok", "failed"]
    assert records(path, "get")[1]["error"] == "NotFound"
    assert [record.get("count") for record in records(path, "dump")] == [None, 1]
    assert "scope" not in records(path, "stats")[0]
    deleted = records(path, "delete")[1]
    assert deleted["ids"] == [id, event]
    assert (deleted["of"], deleted["count"]) == ({"session": "s1"}, 1)
    assert records(path, "delete_scope")[1]["result"] == "ok"
    text = path.read_text()
    assert SECRET_WORD not in text
    assert QUESTION_WORD not in text
    assert verify(path).problem is None


def test_names_are_recorded_without_secrets(tmp_path: Path, path: Path) -> None:
    token = SAMPLES["GitHub token"][1]
    with Memory(tmp_path / "a.db", audit=path, privacy="redact") as memory, pytest.raises(NotFound):
        memory.get(token)
    with Memory(tmp_path / "a.db", audit=path, privacy="redact") as memory:
        assert memory.search("boat", scope=Scope(user=token)) == []
    assert token not in path.read_text()
    assert "[redacted GitHub token]" in records(path, "get")[0]["of"]["id"]
    assert "[redacted GitHub token]" in records(path, "search")[0]["scope"]["user"]


def test_a_log_is_free_again_after_a_memory_could_not_open(tmp_path: Path, path: Path) -> None:
    (tmp_path / "bad.db").write_text("not a store, but a text that is long enough to be a header " * 9)
    with pytest.raises(StoreError):
        Memory(tmp_path / "bad.db", audit=path)
    with Memory(tmp_path / "a.db", audit=path):
        pass


def test_a_write_without_a_record_is_not_carried_out(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AuditError("the disk is full")

    with Memory(tmp_path / "a.db", audit=path) as memory:
        id = memory.add("Ann sails.")
        monkeypatch.setattr(AuditLog, "append", fail)
        for call in (lambda: memory.add("Bob rows."), lambda: memory.delete(id), lambda: memory.search("Who sails?")):
            with pytest.raises(AuditError, match="the disk is full"):
                call()
        with pytest.raises(AuditError):
            [*memory.dump()]
        monkeypatch.undo()
        assert memory.stats()["notes"] == 1
        assert memory.search("Who sails?")[0].note.id == id


def test_an_end_that_cannot_be_recorded_is_an_error(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = AuditLog.append

    def fail_at_the_end(log: AuditLog, record: Any) -> None:
        if record.get("result") == "ok":
            raise AuditError("the disk is full")
        append(log, record)

    with Memory(tmp_path / "a.db", audit=path) as memory:
        monkeypatch.setattr(AuditLog, "append", fail_at_the_end)
        with pytest.raises(AuditError, match="add was carried out, but its end is not recorded: the disk is full"):
            memory.add("Ann sails.")
        monkeypatch.undo()
        assert memory.stats()["notes"] == 1
    assert [record["result"] for record in records(path, "add")] == ["begun"]


def test_a_server_records_keys_and_refusals(tmp_path: Path, path: Path) -> None:
    log = AuditLog(path)
    with served(tmp_path / "a.db", limits=QUICK, audit=log) as server:
        ann, nobody = server.asker(server.key("laptop", ANN, right="write")), server.asker("zk_wrong")
        id = ann("POST", "/v1/events", {"content": f"The safe of {SECRET_WORD} is green."}).body["id"]
        assert ann("POST", "/v1/search", {"question": QUESTION_WORD}).status == 200
        assert ann("DELETE", f"/v1/notes/{id}").status == 403
        assert ann("GET", f"/v1/notes/{id}?user=bob").status == 403
        assert ann("GET", "/ready").status == 200
        for _ in range(3 * MOST):
            assert nobody("GET", f"/v1/notes/{id}").status == 401
    (key,) = {record["who"] for record in records(path, "add")}
    assert re.fullmatch(r"key:[0-9a-f]{12}", key)
    assert {record["name"] for record in records(path, "add")} == {"laptop"}
    assert records(path, "search")[0]["who"] == key
    assert records(path, "get") == []  # neither a refused request nor a readiness check is an operation
    refused = records(path, "http")
    first, second = refused[:2]
    assert first == first | {"who": key, "name": "laptop", "method": "DELETE", "route": "/v1/notes/{id}"}
    assert (first["status"], first["result"], second["status"]) == (403, "refused", 403)
    unknown = [record for record in refused if record["status"] == 401]
    assert {record["who"] for record in unknown} == {None}
    assert not any("name" in record for record in unknown)
    assert len(unknown) + 2 >= MOST
    assert sum(1 + record.get("omitted", 0) for record in unknown) <= 3 * MOST
    text = path.read_text()
    assert SECRET_WORD not in text
    assert QUESTION_WORD not in text
    assert verify(path).problem is None


def test_commands_check_and_show_a_log(zettel: Zettel, tmp_path: Path, path: Path) -> None:
    with Memory(tmp_path / "a.db", audit=path) as memory:
        with acting_as("slack:eve"):
            id = memory.add("Ann sails.", scope=ANN)
        memory.add("Bob rows.")
        memory.delete(id, scope=ANN)
    file = str(path)
    good = zettel("audit", "verify", file)
    assert good.status == 0
    assert re.fullmatch(r"7 lines are intact, the last has the hash [0-9a-f]{64}\n", good.out)
    report = zettel("audit", "verify", file, "--json").json()
    assert zettel("audit", "verify", file, "--contains", report["last_hash"]).status == 0
    lines = zettel("audit", "show", file).out.splitlines()
    assert [line.split()[2:4] for line in lines] == [
        ["-", "log"], ["slack:eve", "add"], ["-", "add"], ["-", "delete"],
    ]  # fmt: skip
    assert id in lines[1]
    assert lines[1].split()[4:6] == ["user=ann", "ok"]
    assert len(zettel("audit", "show", file, "--last", "2").out.splitlines()) == 2
    for options in (["--id", id], ["--user", "ann"]):
        shown = zettel("audit", "show", file, *options, "--json").json()
        assert [record["op"] for record in shown] == ["add", "delete"]
    assert len(zettel("audit", "show", file, "--who", "slack:eve", "--json").json()) == 1
    assert zettel("audit", "show", file, "--op", "search").out == ""
    path.write_bytes(path.read_bytes().replace(b"slack:eve", b"slack:ann"))
    bad = zettel("audit", "verify", file)
    assert bad.status == 1
    assert bad.out.splitlines() == [
        f"{file}:2: changed, or the line before is missing", "1 lines before it are intact",
    ]  # fmt: skip
    assert "the audit log nowhere does not exist" in zettel("audit", "show", "nowhere").err
    (tmp_path / "torn").write_text(json.dumps({"op": "x"})[:5])
    assert "is not a line of an audit log" in zettel("audit", "show", str(tmp_path / "torn")).err
