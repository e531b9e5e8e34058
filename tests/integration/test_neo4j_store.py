"""The Neo4j store on servers of both release lines: statements, unusual names, several writers, and errors."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests import neo4j_servers
from tests.contract.support import cache_answer
from tests.integration.test_workers import wait_until
from tests.neo4j_servers import DATABASE, Server
from zettel import Memory, Scope
from zettel.cypher import queries
from zettel.errors import InvalidInput, NotAStore, StoreDenied, StoreTooNew, StoreUnreachable
from zettel.graph.neo4j import hashes, integrity, planning, scope_cache, spaces
from zettel.graph.neo4j.connection import DEFAULT_DATABASE, Neo4jConnection, Transaction, statement
from zettel.graph.neo4j.schema import MAX_INDEXED_DIM, migrate
from zettel.graph.neo4j.store import Neo4jStore
from zettel.jobs.loop import JobLoop
from zettel.model import LinkType
from zettel.ports import EmbedderInfo
from zettel.text.tokens import TOKENS_VERSION

pytestmark = [pytest.mark.integration, pytest.mark.every_release, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
VARIANTS: dict[str, list[tuple[str, ...]]] = {
    "add": [(), ("undated",)],
    "candidates": [
        (*narrowed, vector)
        for narrowed in ((), ("as_of", "filtered", "narrowed"))
        for vector in ("vector", "indexed", "no_vector")
    ],
    "events_from": [("file",), ("session",), ("file", "session")],
    "events_put": [(), ("undated",)],
    "lookup": [(), ("identities", "names", "titles", "words", "state")],
    "jobs": [(), ("scoped",)],
    "jobs_due": [(), ("scoped",)],
    "jobs_pending": [(), ("scoped",)],
    "jobs_retry": [(), ("scoped",)],
    "model_use": [(), ("scoped",)],
    "scope_changes": [(), ("loading",)],
}
"""Flags of statements with optional lines, so that every line occurs in one variant."""
OF_ALL_SCOPES = frozenset(
    "add arriving_end batch_begin check_orphans check_scopes check_unembedded counts graphiti indexes leaving_end "
    "orphans_drop restore_commit restores scopes scopes_lock space_activate spaces "
    "spaces_drop spaces_leaving spaces_sweep unsettled without_vector".split()
)
"""Statements that may scan: over all scopes or vector sets, over the whole store for repairs, or over foreign data."""
SCANS = ("AllNodesScan", "NodeByLabelScan", "DirectedAllRelationshipsScan", "UndirectedAllRelationshipsScan",
         "DirectedRelationshipTypeScan", "UndirectedRelationshipTypeScan", "DirectedUnionRelationshipTypesScan",
         "UndirectedUnionRelationshipTypesScan")  # fmt: skip
SPACE = 8
"""Dimension of the vector set that explained statements use."""


@pytest.fixture
def server(neo4j_server: Server) -> Server:
    """Return an empty server of each release line."""
    return neo4j_server


@pytest.fixture
def memory(server: Server) -> Iterator[Memory]:
    with Memory(server.url, auth=server.auth) as instance:
        yield instance


def operators(plan: dict[str, Any]) -> Iterator[str]:
    yield plan["operatorType"].partition("@")[0]
    for child in plan.get("children", ()):
        yield from operators(child)


@pytest.mark.timeout(600)
def test_every_statement_has_an_efficient_plan(server: Server) -> None:
    """No statement uses deprecated syntax or a cartesian product, and no statement of one scope scans all scopes."""
    import anyio
    import neo4j

    connection = Neo4jConnection(server.url, server.auth, DATABASE)

    async def prepare() -> None:
        await connection.open()
        await migrate(connection)
        await connection.command(statement("space_index", release=connection.release, dim=SPACE))
        await connection.close()

    anyio.run(prepare)
    wrong = []
    quiet = [neo4j.NotificationDisabledClassification.UNRECOGNIZED, neo4j.NotificationDisabledClassification.GENERIC]
    with (
        neo4j.GraphDatabase.driver(
            server.url, auth=server.auth, notifications_disabled_classifications=quiet
        ) as driver,
        driver.session(database=DATABASE) as session,
    ):
        for name in queries():
            types = [type.value for type in LinkType] if name == "links_put" else [LinkType.RELATES.value]
            for flags, type in product(VARIANTS.get(name, [()]), types):
                if "indexed" in flags and connection.searches_in_scope:
                    flags = (*flags, "cypher25")
                text = statement(name, *flags, release=connection.release, dim=SPACE, page=1, type=type, label="Scope")
                if name == "space_index":
                    continue
                language, _, rest = text.partition(" ")
                version, _, rest = rest.partition(" ") if " " in rest.split("\n")[0] else rest.partition("\n")
                summary = session.run(f"{language} {version} EXPLAIN {rest}").consume()
                plan_operators = set(operators(summary.plan or {}))
                wrong += [
                    (name, flags, finding.gql_status)
                    for finding in summary.gql_status_objects
                    if finding.is_notification
                ]
                wrong += [(name, flags, finding) for finding in plan_operators if finding == "CartesianProduct"]
                if name not in OF_ALL_SCOPES:
                    wrong += [(name, flags, finding) for finding in plan_operators.intersection(SCANS)]
    assert wrong == []


def test_repairing_the_order_of_a_session_is_linear_in_its_length(server: Server, memory: Memory) -> None:
    import neo4j

    events: list[dict[str, str]] = [{"content": f"Turn {turn}.", "session": "talk"} for turn in range(200)]
    for turn, event in enumerate(events[::2]):
        event["occurred_at"] = f"2024-05-{1 + turn % 28:02}T09:00Z"
    memory.add_many(events)
    text = statement("sessions_repair", release=5).replace("CYPHER 5 ", "CYPHER 5 PROFILE ", 1)
    parameters = {"scope": memory.scope.key, "sessions": ["talk"], "changes": 0, "never": hashes.NO_TIME}
    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        result = driver.execute_query(text, given=parameters, database_=DATABASE)
    cost = sum(hits(result.summary.profile or {}))
    assert cost < 50 * len(events)


def hits(profile: dict[str, Any]) -> Iterator[int]:
    """Return the database hits of each operator of a profiled plan."""
    yield profile.get("dbHits", 0)
    for child in profile.get("children", ()):
        yield from hits(child)


class LongVectorEmbedder:
    """Makes vectors too long for the server's index; the vector of a text encodes its length."""

    info = EmbedderInfo(name="long", dim=MAX_INDEXED_DIM + 4, fingerprint="0")
    remote = False

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.info.dim), np.float32)
        rows[range(len(texts)), [len(text) for text in texts]] = 1
        return rows


def test_vectors_too_long_for_an_index_are_searched_exactly(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_cache, "MAX_NOTES", -1)
    monkeypatch.setattr(spaces, "EXACT_NOTES", 2)
    with Memory(server.url, auth=server.auth, embedder=LongVectorEmbedder()) as memory:
        memory.add_many([{"content": "harbour " * number} for number in range(1, 7)])
        for _ in range(2):  # the second search knows the size of the scope
            assert len(memory.search("harbour harbour", k=6)) == 6


def test_vectors_enter_the_index_in_batches(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pending vectors are compared exactly, so that searches find the same notes before and after."""
    monkeypatch.setattr(scope_cache, "MAX_NOTES", -1)
    monkeypatch.setattr(spaces, "EXACT_NOTES", 10)
    monkeypatch.setattr(spaces, "INDEXED_AT_ONCE", 10)
    monkeypatch.setattr(spaces, "PENDING", 20)

    def indexed() -> int:
        count = "MATCH (v:Vector) WHERE any(name IN labels(v) WHERE name <> 'Vector') RETURN count(v) AS count"
        return int(memory.cypher(count)[0]["count"])

    def search_ids() -> list[set[str]]:
        return [{hit.note.id for hit in memory.search(f"Who sailed to island {n}?", k=12, log=False)} for n in (3, 20)]

    with Memory(server.url, auth=server.auth) as memory:
        memory.add_many([{"content": f"Ann sailed to island {n}, and Bob slept."} for n in range(15)])
        memory.flush()
        assert indexed() == 0
        search_ids()  # caches the size of the scope
        memory.add_many([{"content": f"Bob sailed to island {n}, and Ann slept."} for n in range(15, 35)])
        memory.flush()
        assert wait_until(lambda: indexed() == 35)  # after the jobs that flush awaits
        memory.add("Ida sailed to island 20, and to island 3.")
        memory.flush()
        assert indexed() == 35
        by_index = search_ids()
        with monkeypatch.context() as patch:
            patch.setattr(spaces, "EXACT_NOTES", 1000)
            assert search_ids() == by_index
        memory.export(tmp_path / "whole.zettel", "zettel")
        memory.delete_scope()
        memory.import_transcript(tmp_path / "whole.zettel")
        assert indexed() == 36
        assert memory.check() == []


def test_auth_that_is_not_a_pair_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="auth must be \\(user, password\\)"):
        Memory("neo4j://127.0.0.1:1", auth="secret")  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_an_untrusted_certificate_is_reported() -> None:
    from neo4j.exceptions import ServiceUnavailable

    certificate_error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    certificate_error.verify_message = "self-signed certificate"
    with pytest.raises(StoreUnreachable, match=r"its certificate is not trusted \(self-signed certificate\)"):
        async with Neo4jConnection("neo4j+s://localhost", ("neo4j", "pass"), DATABASE).translated():
            raise ServiceUnavailable("Couldn't connect") from certificate_error


def test_a_server_address_without_scheme_creates_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for options in ({"auth": ("neo4j", "secret")}, {"database": "graphs"}):
        with pytest.raises(InvalidInput, match="localhost:7687 names a file"):
            Memory("localhost:7687", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "error_text"),
    [
        ("neo4j://ann:secret@127.0.0.1:1", "neo4j://127.0.0.1:1: an address must not contain a user or password"),
        ("bolt://ann:s/ecret@127.0.0.1:1", "bolt://127.0.0.1:1: an address must not contain a user or password"),
        ("neo4j://127.0.0.1:bolt", "neo4j://127.0.0.1:bolt is not the address of a server"),
        ("neo4j://127.0.0.1:70000", "Port out of range"),
        ("neo4j://127.0.0.1:1?database=graphs", "name it with database="),
        ("neo4j://127.0.0.1:1/graphs", "name it with database="),
        ("neo4j://127.0.0.1:1?policy", "Invalid parameters"),
    ],
)
def test_an_invalid_address_is_an_error_without_its_password(url: str, error_text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Memory(url, auth=("ann", "pass"))
    assert error_text in str(error.value)
    assert "ecret" not in str(error.value)


def test_the_database_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_DATABASE", "graphs")
    assert Neo4jStore("neo4j://127.0.0.1:1").connection.database == "graphs"
    assert Neo4jStore("neo4j://127.0.0.1:1", database="mine").connection.database == "mine"
    monkeypatch.setenv("NEO4J_DATABASE", "")
    assert Neo4jStore("neo4j://127.0.0.1:1").connection.database == DEFAULT_DATABASE


ODD = ["acme/ann", "Acme/Ann", "acme ann", "acme ann bob", "acme", "ann", "acme:ann", "*", "acme/ann OR 1", "`n`", "ä"]


def test_scopes_with_similar_names_are_separate(memory: Memory) -> None:
    for name in ODD:
        memory.add(f"The harbour key of <{name}>.", title=f"Key of {name}", scope=Scope(tenant=name))
    memory.flush()
    for name in ODD:
        scope = Scope(tenant=name)
        hits_found = memory.search("Where is the harbour key?", scope=scope)
        assert [hit.note.content for hit in hits_found] == [f"The harbour key of <{name}>."]
        assert memory.stats(scope=scope)["notes"] == 1
        assert [term.notes for term in memory.terms(hits_found[0].note.id, scope=scope)] != []
        assert {term.notes for term in memory.terms(hits_found[0].note.id, scope=scope)} == {1}
    assert memory.delete_scope(scope=Scope(tenant="acme ann")) == 1
    assert len(memory.search("harbour key", scope=Scope(tenant="acme/ann"))) == 1
    assert memory.check() == []


SYNTAX = [
    "Robert'); MATCH (n) DETACH DELETE n //",
    "`) DETACH DELETE (`",
    '{scope: "x"} RETURN n',
    "$scope $words \\u0027 \\",
    "+harbour -key && title:* OR [a TO z] ~0.5^2 (",
    "/harbour.*/ AND NOT *:*",
    "{{links}} MICROS(x) //: end",
]


def test_query_syntax_in_texts_and_names_is_text(memory: Memory) -> None:
    keys = {}
    for number, text in enumerate(SYNTAX):
        keys[text] = memory.add(
            text, id=str(number), title=f"{text} ({number})", speaker=text, session=text, source=f"{text}.txt",
            metadata={text: text}, payload={text: [text]},
        )  # fmt: skip
        memory.update(keys[text], keywords=[text, "harbour"], tags=[text])
    memory.flush()
    assert memory.stats()["notes"] == len(SYNTAX)
    for text, id in keys.items():
        note = memory.get(id)
        assert (note.content, note.speaker, note.session, note.tags) == (text, text, text, (text,))
        assert memory.get(note.event_ids[0]).payload == {text: [text]}
        for options in ({"session": text}, {"speaker": text}, {"tags": [text]}, {"filter": {text: text}}):
            assert [hit.note.id for hit in memory.search(f"harbour {text}", **options)] == [id]
    assert memory.check() == []
    assert memory.delete(source=f"{SYNTAX[0]}.txt") == 1
    assert memory.stats()["notes"] == len(SYNTAX) - 1


def test_a_note_has_readable_properties_in_the_browser(server: Server, memory: Memory) -> None:
    """It has a caption, plain fields and native dates, and no list of numbers."""
    import neo4j

    memory.add("Ann moved to Oslo.", speaker="Ann", occurred_at="2024-05-01T09:00:00.000001Z", session="s1", wait=True)
    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        (row,) = driver.execute_query("MATCH (n:Note) RETURN properties(n) AS note", database_=DATABASE).records
    note = row["note"]
    assert note["caption"] == "Ann moved to Oslo."
    assert note["occurred_at"].to_native().isoformat() == "2024-05-01T09:00:00.000001+00:00"
    assert note["keywords"]
    assert not any(isinstance(value, (list, bytes)) and len(value) > 12 for value in note.values())
    assert not any(
        isinstance(item, (int, float)) for value in note.values() if isinstance(value, list) for item in value
    )


def test_an_add_runs_one_read_and_one_write(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the commit, an add takes three round trips."""
    calls: list[str] = []
    monkeypatch.setattr(JobLoop, "start", lambda loop: None)  # statements of jobs are not counted

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(connection: Neo4jConnection, statement: object, /, *flags: str, **values: Any) -> Any:
            calls.append(f"{method.__name__} {statement if isinstance(statement, str) else ''}".strip())
            return await method(connection, statement, *flags, **values)

        return call

    with Memory(server.url, auth=server.auth) as memory:
        memory.add("The mast is oak.")
        for method in (Neo4jConnection.read, Neo4jConnection.write, Neo4jConnection.reading, Neo4jConnection.writing):
            monkeypatch.setattr(Neo4jConnection, method.__name__, counted(method))
        id = memory.add("The keel is elm.", id="1", session="s")
        assert calls == ["read lookup", "write add"]
        calls.clear()
        assert memory.add("The keel is elm.", id="1", session="s") == id
        assert calls == ["read lookup"]
        calls.clear()
        memory.add("Kestrel is the name of the boat.", title="Kestrel")
        assert calls == ["read lookup", "write add"]
        calls.clear()
        memory.add("Who painted Kestrel?")
        assert calls == ["read lookup", "read notes", "writing"]  # with its link to the title
        assert memory.check() == []


def test_a_delete_runs_as_many_statements_for_many_neighbours(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    run = Transaction.run

    async def counted(transaction: Transaction, name: str, /, *flags: str, **values: Any) -> Any:
        statements.append(name)
        return await run(transaction, name, *flags, **values)

    with Memory(server.url, auth=server.auth) as memory:
        memory.add_many([{"content": f"The boat left pier {n} of Bergen.", "session": "deleted"} for n in range(12)])
        memory.add_many([{"content": f"The boat lies at pier {n} of Bergen.", "session": "other"} for n in range(12)])
        memory.flush()
        monkeypatch.setattr(JobLoop, "start", lambda loop: None)
        monkeypatch.setattr(Transaction, "run", counted)
        assert memory.delete(session="deleted") == 12
        monkeypatch.undo()
        assert statements.count("notes_revise") == statements.count("revisions_erase") == 1
        assert memory.check() == []


WRITER = """
import sys
from zettel import Memory
with Memory(sys.argv[1], auth=(sys.argv[2], sys.argv[3])) as memory:
    for number in range(int(sys.argv[5])):
        memory.add(f"{sys.argv[4]} saw ship {number} in the harbour.", speaker=sys.argv[4], session="watch",
                   occurred_at=f"2024-01-01T{number:02}:00:00Z")
"""


def test_two_processes_can_add_to_one_scope(server: Server, memory: Memory) -> None:
    count = 12
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, server.url, *server.auth, name, str(count)],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )
        for name in ("Ann", "Bob")
    ]  # fmt: skip
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors
    memory.flush()
    notes = memory.list(limit=100).notes
    assert len(notes) == 2 * count
    assert len({note.seq for note in notes}) == 2 * count
    assert memory.check() == []
    assert memory.jobs() == []
    assert len(memory.search("ship in the harbour", session="watch", k=30)) == 2 * count


def test_several_processes_can_open_an_empty_database(server: Server) -> None:
    neo4j_servers.wipe(server)
    code = "import sys; from zettel import Memory; Memory(sys.argv[1], auth=(sys.argv[2], sys.argv[3])).close()"
    openers = [
        subprocess.Popen([sys.executable, "-c", code, server.url, *server.auth], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for opener in openers:
        _, errors = opener.communicate()
        assert opener.returncode == 0, errors.decode()
    with Memory(server.url, auth=server.auth) as memory:
        assert memory.add("There.")
        assert memory.check() == []


def test_failed_connections_are_one_line_errors(server: Server) -> None:
    host = server.url.rpartition(":")[0]
    for url, options, error, error_text in (
        (f"{host}:1", {"auth": server.auth}, StoreUnreachable, "cannot be reached"),
        (server.url, {"auth": ("neo4j", "wrong password")}, StoreDenied, "refused that user or password"),
        (server.url, {"auth": server.auth, "database": "nowhere"}, NotAStore, "no database 'nowhere'"),
    ):
        started = time.monotonic()
        with pytest.raises(error, match=error_text) as error_info:
            Memory(url, **options)
        assert "\n" not in str(error_info.value)
        assert server.auth[1] not in str(error_info.value)
        assert time.monotonic() - started < 60


def test_a_foreign_database_is_refused(server: Server) -> None:
    import neo4j

    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        driver.execute_query("MATCH (z:Zettel) DELETE z", database_=DATABASE)
        driver.execute_query("CREATE (:Note {text: 'shopping'})", database_=DATABASE)
        with pytest.raises(NotAStore, match="another program"):
            Memory(server.url, auth=server.auth)
        driver.execute_query("MATCH (n:Note) DELETE n CREATE (:Zettel {id: 'store', layout: 99})", database_=DATABASE)
        with pytest.raises(StoreTooNew, match="layout 99"):
            Memory(server.url, auth=server.auth)
        driver.execute_query("MATCH (z:Zettel) DELETE z", database_=DATABASE)


def test_check_finds_and_repairs_damage(server: Server, memory: Memory) -> None:
    import neo4j

    ids = [
        memory.add(f"Kestrel the dog howls at ship {n}.", session="s", occurred_at=f"2024-01-0{n}") for n in (3, 1, 2)
    ]
    cache_answer(memory, "key", "It howls.", ids[2])
    memory.flush()
    for _ in range(2):
        hit = memory.search("Kestrel's ship")[0]
        memory.feedback(hit.search_id or "", [hit.note.id])
    assert memory.check() == []
    before = [memory.get(id) for id in ids], [memory.terms(id) for id in ids], [memory.links(id) for id in ids]
    hit_ids = json.dumps([hit.note.id for hit in memory.search("Kestrel's ship")])
    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        for damage in (
            "MATCH (n:Note {id: $id}) SET n.caption = 'forged'",
            "MATCH (:Note {id: $id})-[:FOUND_BY]->(i) SET i.words = 'nonsense'",
            "MATCH (:Note {id: $id})-[h:HAS_TERM]->() DELETE h",
            "MATCH (w:Word) WITH w LIMIT 1 SET w.notes = 77",
            "MATCH (s:Scope) SET s.tokens = 1",
            "MATCH (:Event)-[n:NEXT]->() WITH n LIMIT 1 DELETE n",
            "MATCH (e:Event) WITH e LIMIT 1 SET e.place = left(e.place, 48) + right(e.place, 12) + right(e.place, 19)",
            "MATCH ()-[l:RELATES]->() WITH l LIMIT 1 DELETE l",
            "CREATE (:Index {scope: 'nobody', id: 'n_0'})",
            "MATCH (:Answer)-[a:ASKED_ABOUT]->() DELETE a",
            "MATCH (:Search)-[f:FOUND]->() WITH f LIMIT 1 DELETE f",
            "MATCH ()-[u:USED]->(:Usage) DELETE u",
            "DROP INDEX zettel_words",
            f"DROP INDEX zettel_vectors_{memory.stats()['dimension']}",
            "DROP CONSTRAINT zettel_note",
        ):
            driver.execute_query(damage, id=ids[2], database_=DATABASE)
            assert memory.check() != [], damage
            memory.check(repair=True)
            assert memory.check() == [], damage
    assert before == (
        [memory.get(id) for id in ids],
        [memory.terms(id) for id in ids],
        [memory.links(id) for id in ids],
    )
    assert json.dumps([hit.note.id for hit in memory.search("Kestrel's ship")]) == hit_ids


def test_an_older_tokenizer_version_is_reindexed_and_a_newer_one_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import neo4j

    with Memory(server.url, auth=server.auth) as memory:
        id = memory.add("The harbour.")
    index, changed = integrity.index_note, {"authored": ("keywords",), "keywords": ("boat",)}
    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        try:
            with monkeypatch.context() as patched:
                patched.setattr(integrity, "TOKENS_VERSION", TOKENS_VERSION + 1)
                for module in (integrity, planning):
                    patched.setattr(module, "index_note", lambda note: index(note.model_copy(update=changed)))
                with Memory(server.url, auth=server.auth) as memory:
                    assert "boat" in [term.key for term in memory.terms(id)]
            with pytest.raises(StoreTooNew, match="tokens version"):
                Memory(server.url, auth=server.auth)
        finally:
            driver.execute_query("MATCH (z:Zettel) REMOVE z.tokens", database_=DATABASE)
