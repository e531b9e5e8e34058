"""``zettel serve`` as a separate process, and ``zettel keys``."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.http_server import PATIENCE, Asker
from tests.integration.command import Zettel
from tests.integration.mcp_client import environment
from zettel import Memory, Scope

pytestmark = pytest.mark.integration


@contextmanager
def serving(store: Path, *arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server with these environment ``variables``; yield its process and its URL."""
    command = [sys.executable, "-m", "zettel", "serve", "--store", str(store), "--port", "0", *arguments]
    sealed = environment() | variables
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=sealed, cwd=store.parent) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            url = re.search(r"https?://\S+", line)
            assert url is not None, line + process.stderr.read()
            yield process, url[0]
        finally:
            if process.poll() is None:
                process.kill()


def end_server(process: subprocess.Popen[str], number: int) -> list[dict[str, Any]]:
    """End a server by a signal; return its log."""
    process.send_signal(number)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, log
    return [json.loads(line) for line in log.splitlines()]


@contextmanager
def four_writers(url: str) -> Iterator[list[str]]:
    """Write with four clients until the server stops; yield the ids of acknowledged events once there are some."""
    acknowledged: list[str] = []
    busy = threading.Event()

    def write(writer: int) -> None:
        client = Asker(int(url.rpartition(":")[2]))
        try:
            for n in range(100_000):
                answer = client("POST", "/v1/events?user=ann", {"content": f"Writer {writer} wrote line {n}."})
                assert answer.status == 200
                acknowledged.append(answer.body["id"])
                if len(acknowledged) > 20:
                    busy.set()
        except OSError:  # the server has stopped
            return
        finally:
            client.close()

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    assert busy.wait(PATIENCE)
    yield acknowledged
    for writer in writers:
        writer.join(PATIENCE)


def require_stored(store: Path, ids: Sequence[str]) -> None:
    """Check that a memory is undamaged and contains these events of ann."""
    with Memory(store, scope=Scope(user="ann")) as memory:
        stored = {entry[0].event_id: entry[1][0].id for entry in memory.dump()}
        assert set(ids) <= set(stored.values())
        assert memory.check() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_during_writes_loses_no_acknowledged_event(tmp_path: Path, number: int) -> None:
    with serving(tmp_path / "a.db") as (process, url), four_writers(url) as acknowledged:
        log = end_server(process, number)
    assert all(entry["status"] == 200 for entry in log)
    require_stored(tmp_path / "a.db", acknowledged)


def test_keys_can_be_created_listed_used_and_revoked(zettel: Zettel, tmp_path: Path) -> None:
    store = ("--store", "a.db")
    created = zettel("keys", "create", "laptop", "--user", "ann", *store)
    assert "restart a server that runs without keys" in created.err
    assert created.status == 0, created.err
    key = created.out.strip()
    assert re.fullmatch(r"zk_[0-9a-f]{12}_[\w-]{43}", key)
    assert "laptop may write in user='ann'; the key is shown only once, a.db.keys stores its hash" in created.err
    assert "the store a.db does not exist yet" in created.err
    options = ("--scope", "tenant=acme,user=ann", "--scope", "user=12", "--rights", "read", "--expires", "90d")
    assert "restart a server" not in zettel("keys", "create", "second", "--user", "ann", *store).err
    report = zettel("keys", "create", "several", *options, "--json", *store).json()
    assert report["scopes"] == [Scope(tenant="acme", user="ann").model_dump(), Scope(user="12").model_dump()]
    assert zettel("keys", "create", "every", "--all-scopes", "--rights", "admin", *store).status == 0
    listed = zettel("keys", "list", *store)
    assert "laptop" in listed.out
    assert f"…{key[-4:]}" in listed.out
    assert key not in listed.out + str(zettel("keys", "list", "--json", *store).json())
    with serving(tmp_path / "a.db") as (process, url):
        client = Asker(int(url.rpartition(":")[2]), key)
        id = client("POST", "/v1/events", {"content": "Ann moved to Oslo."}).body["id"]
        assert client("GET", f"/v1/notes/{id}").status == 200
        assert zettel("keys", "revoke", "laptop", *store).out.startswith("laptop (")
        assert client("GET", f"/v1/notes/{id}").status == 401
        client.close()
        log = end_server(process, signal.SIGTERM)
    assert [(entry["route"], entry["status"], entry["key"]) for entry in log] == [
        ("/v1/events", 200, "laptop"), ("/v1/notes/{id}", 200, "laptop"), ("other", 401, None),
    ]  # fmt: skip
    assert "revoked" in zettel("keys", "list", *store).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--host", "0.0.0.0"], "no keys exist: create a key with `zettel keys create`"),
        (["serve", "--certfile", "a.pem"], "--certfile and --keyfile belong together"),
        (["serve", "--certfile", "a.pem", "--keyfile", "b.pem"], "is not a usable certificate"),
        (["serve", "--keys", "none.keys"], "the key file none.keys does not exist"),
        (["keys", "list"], "the key file"),
        (["keys", "revoke", "laptop"], "the key file"),
        (["keys", "create", "x", "--rights", "root"], "use read, write, admin"),
        (["keys", "create", "x", "--scope", "usr=ann"], "--scope 'usr=ann': expected tenant, user, agent"),
        (["keys", "create", "x", "--reads", "usr=ann"], "--reads 'usr=ann': expected tenant, user, agent"),
        (["keys", "create", "x", "--all-scopes", "--reads", "user=ann"], "leave --reads out"),
        (["keys", "create", "x", "--scope", "user=ann", "--all-scopes"], "leave --scope, --tenant, --user"),
        (["keys", "create", "x", "--scope", "user=ann", "--user", "ann"], "--scope cannot be combined with --tenant"),
        (["keys", "create", "x", "--expires", "soon"], "--expires='soon' is not a time"),
        (["keys", "create", "x", "--expires", "2020-01-01"], "is in the past"),
    ],
)
def test_wrong_arguments_are_one_line_errors(zettel: Zettel, arguments: Sequence[str], message: str) -> None:
    result = zettel(*arguments, "--store", "a.db")
    assert result.status == (1 if message.startswith("the key file") else 2)
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_other_hosts_require_keys_and_encryption(zettel: Zettel, tmp_path: Path) -> None:
    assert zettel("keys", "create", "x", "--store", "a.db").status == 0
    result = zettel("serve", "--host", "0.0.0.0", "--store", "a.db")
    assert "keys and memories would be sent unencrypted" in result.err
    with serving(tmp_path / "a.db", "--host", "0.0.0.0", "--behind-proxy", "127.0.0.1") as (process, url):
        client = Asker(int(url.rpartition(":")[2]))
        assert client("GET", "/v1/notes").status == 401
        client.close()
        end_server(process, signal.SIGTERM)


def test_a_server_with_a_certificate_answers_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls = ("--certfile", str(tmp_path / "cert.pem"), "--keyfile", str(tmp_path / "key.pem"))
    with serving(tmp_path / "a.db", *tls) as (process, url):
        assert url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        with urllib.request.urlopen(f"{url}/health", context=trusted, timeout=PATIENCE) as answer:
            assert json.load(answer) == {"status": "ok"}
        end_server(process, signal.SIGTERM)
