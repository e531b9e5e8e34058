"""``zettel serve`` and ``zettel keys``: as a process of its own, from its start to its end."""

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
def serving(store: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and where it answers."""
    command = [sys.executable, "-m", "zettel", "serve", "--store", str(store), "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), cwd=store.parent) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            at = re.search(r"https?://\S+", line)
            assert at is not None, line + process.stderr.read()
            yield process, at[0]
        finally:
            if process.poll() is None:
                process.kill()


def ended(process: subprocess.Popen[str], number: int) -> list[dict[str, Any]]:
    """The log of a server that a signal ends."""
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    return [json.loads(line) for line in told.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_during_writes_loses_nothing_that_was_acknowledged(tmp_path: Path, number: int) -> None:
    acknowledged: list[str] = []
    busy = threading.Event()

    def write(port: int, writer: int) -> None:
        asker = Asker(port)
        try:
            for n in range(100_000):
                answer = asker("POST", "/v1/events?user=ann", {"content": f"Writer {writer} wrote line {n}."})
                assert answer.status == 200
                acknowledged.append(answer.body["id"])
                if len(acknowledged) > 20:
                    busy.set()
        except OSError:  # the server has gone
            return
        finally:
            asker.close()

    with serving(tmp_path / "a.db") as (process, url):
        writers = [threading.Thread(target=write, args=(int(url.rpartition(":")[2]), n)) for n in range(4)]
        for writer in writers:
            writer.start()
        assert busy.wait(PATIENCE)
        log = ended(process, number)
        for writer in writers:
            writer.join(PATIENCE)
    assert all(one["status"] == 200 for one in log)
    with Memory(tmp_path / "a.db", scope=Scope(user="ann")) as memory:
        kept = {entry[0].event_id: entry[1][0].id for entry in memory.dump()}
        assert set(acknowledged) <= set(kept.values())
        assert memory.check() == []


def test_keys_from_their_making_to_their_end(zettel: Zettel, tmp_path: Path) -> None:
    store = ("--store", "a.db")
    made = zettel("keys", "create", "laptop", "--user", "ann", *store)
    assert "restart a server that runs without keys" in made.err
    assert made.status == 0, made.err
    key = made.out.strip()
    assert re.fullmatch(r"zk_[0-9a-f]{12}_[\w-]{43}", key)
    assert "laptop may write in user='ann'; the key is shown only once, a.db.keys stores its hash" in made.err
    assert "the store a.db does not exist yet" in made.err
    several = ("--scope", "tenant=acme,user=ann", "--scope", "user=12", "--rights", "read", "--expires", "90d")
    assert "restart a server" not in zettel("keys", "create", "second", "--user", "ann", *store).err
    told = zettel("keys", "create", "several", *several, "--json", *store).json()
    assert told["scopes"] == [Scope(tenant="acme", user="ann").model_dump(), Scope(user="12").model_dump()]
    assert zettel("keys", "create", "every", "--all-scopes", "--rights", "admin", *store).status == 0
    listed = zettel("keys", "list", *store)
    assert "laptop" in listed.out
    assert f"…{key[-4:]}" in listed.out
    assert key not in listed.out + str(zettel("keys", "list", "--json", *store).json())
    with serving(tmp_path / "a.db") as (process, url):
        asker = Asker(int(url.rpartition(":")[2]), key)
        id = asker("POST", "/v1/events", {"content": "Ann moved to Oslo."}).body["id"]
        assert asker("GET", f"/v1/notes/{id}").status == 200
        assert zettel("keys", "revoke", "laptop", *store).out.startswith("laptop (")
        assert asker("GET", f"/v1/notes/{id}").status == 401
        asker.close()
        log = ended(process, signal.SIGTERM)
    assert [(one["route"], one["status"], one["key"]) for one in log] == [
        ("/v1/events", 200, "laptop"), ("/v1/notes/{id}", 200, "laptop"), ("other", 401, None),
    ]  # fmt: skip
    assert "revoked" in zettel("keys", "list", *store).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serve", "--host", "0.0.0.0"], "no keys exist: create a key with `zettel keys create`"),
        (["serve", "--certfile", "a.pem"], "--certfile and --keyfile belong together"),
        (["serve", "--certfile", "a.pem", "--keyfile", "b.pem"], "is not a usable certificate"),
        (["serve", "--keys", "none.keys"], "the key file none.keys does not exist"),
        (["keys", "list"], "the key file"),
        (["keys", "revoke", "laptop"], "the key file"),
        (["keys", "create", "x", "--rights", "root"], "use read, write, admin"),
        (["keys", "create", "x", "--scope", "usr=ann"], "expected tenant, user, agent"),
        (["keys", "create", "x", "--scope", "user=ann", "--all-scopes"], "leave --scope, --tenant, --user"),
        (["keys", "create", "x", "--scope", "user=ann", "--user", "ann"], "--scope cannot be combined with --tenant"),
        (["keys", "create", "x", "--expires", "soon"], "--expires='soon' is not a time"),
        (["keys", "create", "x", "--expires", "2020-01-01"], "is in the past"),
    ],
)
def test_wrong_arguments(zettel: Zettel, arguments: Sequence[str], told: str) -> None:
    ran = zettel(*arguments, "--store", "a.db")
    assert ran.status == 1
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


def test_beyond_this_machine_it_wants_keys_and_encryption(zettel: Zettel, tmp_path: Path) -> None:
    assert zettel("keys", "create", "x", "--store", "a.db").status == 0
    ran = zettel("serve", "--host", "0.0.0.0", "--store", "a.db")
    assert "keys and memories would be sent unencrypted" in ran.err
    with serving(tmp_path / "a.db", "--host", "0.0.0.0", "--behind-proxy", "127.0.0.1") as (process, url):
        asker = Asker(int(url.rpartition(":")[2]))
        assert asker("GET", "/v1/notes").status == 401
        asker.close()
        ended(process, signal.SIGTERM)


def test_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    made.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls = ("--certfile", str(tmp_path / "cert.pem"), "--keyfile", str(tmp_path / "key.pem"))
    with serving(tmp_path / "a.db", *tls) as (process, url):
        assert url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        with urllib.request.urlopen(f"{url}/health", context=trusted, timeout=PATIENCE) as answer:
            assert json.load(answer) == {"status": "ok"}
        ended(process, signal.SIGTERM)
