"""The proxy of `zettel serve` in front of a model: real clients of OpenAI, a real server, and a model behind HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    AuthenticationError,
    InternalServerError,
    OpenAI,
    PermissionDeniedError,
    RateLimitError,
    UnprocessableEntityError,
)

from tests.http_server import PATIENCE, Served, served
from tests.integration.test_serve import end_server, serving
from tests.talk_server import TalkServer, system
from tests.waiting import until
from zettel import AsyncMemory, Memory, Scope
from zettel.bench.completions import problem
from zettel.errors import StoreFull
from zettel.integrations.conversation_turns import HEAD
from zettel.remote.routes import COMPOSED, ROUTES
from zettel.server.proxy import CHAT, MODELS

pytestmark = pytest.mark.integration

MODEL = "gpt-4o-mini"
UPSTREAM_KEY = "sk-of-the-upstream"
ANN, BO = Scope(tenant="acme", user="ann"), Scope(tenant="acme", user="bo")
EVERYBODY = Scope(tenant="acme", user="*")
SECRET = "Kestrelwood"
"""A word in messages that no log may contain."""


class Upstream(TalkServer):
    """A model that can also answer with prepared bytes, in ``pieces`` that it sends when ``released``."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.released = threading.Semaphore(0)
        self.is_cut = threading.Event()
        self._readers: dict[asyncio.StreamWriter, asyncio.StreamReader] = {}

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._readers[writer] = reader
        await super()._connection(reader, writer)

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        if not self.pieces:
            return await super().answer(writer, request)
        self.requests.append(request)
        for piece in self.pieces:
            while not self.released.acquire(blocking=False):
                if self._readers[writer].at_eof():
                    self.is_cut.set()
                    return False
                await asyncio.sleep(0.01)
            writer.write(piece)
            await writer.drain()
        return False


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Upstream]]:
    store = tmp_path_factory.mktemp("proxy") / "a.db"
    with Upstream() as upstream, served(store, upstream=(upstream.url, UPSTREAM_KEY)) as server:
        yield server, upstream


@pytest.fixture
def upstream(both: tuple[Served, Upstream]) -> Upstream:
    upstream = both[1]
    upstream.reply = lambda request: "I see."
    upstream.failures, upstream.cut_after, upstream.awaited = 0, None, 0
    upstream.pieces, upstream.released = [], threading.Semaphore(0)
    upstream.requests.clear()
    upstream.is_cut.clear()
    return upstream


@pytest.fixture
def server(both: tuple[Served, Upstream], upstream: Upstream) -> Served:
    return both[0]


class User:
    """A person with a memory, and a client of OpenAI that uses it."""

    def __init__(self, server: Served, name: str, **options: Any) -> None:
        self.key = server.key(name, Scope(user=name))
        self.client = OpenAI(base_url=f"{server.url}/v1", api_key=self.key, max_retries=0, **options)
        self.memory = server.asker(self.key)

    def create(self, messages: list[Any], **more: Any) -> Any:
        return self.client.chat.completions.create(model=MODEL, messages=messages, **more)

    def ask(self, messages: list[Any], **more: Any) -> str:
        return str(self.create(messages, **more).choices[0].message.content)

    def notes(self) -> list[dict[str, Any]]:
        return sorted(self.memory("GET", "/v1/notes").body["notes"], key=lambda note: note["occurred_at"] or "")

    def turns(self) -> list[tuple[str, str]]:
        return [(note["speaker"], note["content"]) for note in self.notes()]

    def has(self, turns: int) -> bool:
        return len(self.turns()) == turns


@pytest.fixture
def ann(server: Served, request: pytest.FixtureRequest) -> Iterator[User]:
    user = User(server, f"ann of {request.node.name}")
    with user.client:
        yield user


def asked(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def events(*chunks: dict[str, Any]) -> list[bytes]:
    """Return a stream with these choices, as pieces."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-Id: req_7\r\n\r\n"
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    data = [json.dumps({**body, "choices": [{"index": 0, "finish_reason": None, **chunk}]}) for chunk in chunks]
    return [head, *(f"data: {line}\n\n".encode() for line in [*data, "[DONE]"])]


def test_the_routes_do_not_collide_with_those_of_the_memory(server: Served, ann: User) -> None:
    own = {route.path for route in (*ROUTES.values(), *COMPOSED.values())}
    assert not own & {CHAT, MODELS}
    assert not any(CHAT in path or MODELS in path for path in ann.memory("GET", "/openapi.json").body["paths"])
    assert ann.memory("GET", CHAT).status == 405


class TestMemory:
    def test_a_later_conversation_recalls_an_earlier_one(self, ann: User, upstream: Upstream) -> None:
        assert ann.ask(asked("My boat is called Blue Heron.")) == "I see."
        assert [message["role"] for message in upstream.requests[0]["messages"]] == ["user"]
        messages = [{"role": "developer", "content": "Be brief."}, *asked("What is the name of my boat?")]
        ann.ask(messages, temperature=0.25)
        sent = upstream.requests[1]
        assert sent["temperature"] == 0.25
        assert sent["messages"][0]["content"].startswith(f"Be brief.\n\n{HEAD}\n\n## ")
        assert "My boat is called Blue Heron." in sent["messages"][0]["content"]
        assert sent["messages"][1] == messages[1]
        assert ann.turns() == [
            ("user", "My boat is called Blue Heron."), ("assistant", "I see."),
            ("user", "What is the name of my boat?"), ("assistant", "I see."),
        ]  # fmt: skip
        first, second = {note["session"] for note in ann.notes()[:2]}, {note["session"] for note in ann.notes()[2:]}
        assert len(first) == len(second) == 1
        assert first != second

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_whole_conversation_is_stored_once_and_in_one_session(
        self, ann: User, upstream: Upstream, stream: bool
    ) -> None:
        upstream.reply = lambda request: f"Answer number {len(upstream.requests)}."
        messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
        for text in ("I am Ida and I sail.", "It rains in Oslo.", "My dog is called Rex."):
            messages += asked(text)
            if stream:
                answer = "".join(chunk.choices[0].delta.content or "" for chunk in ann.create(messages, stream=True))
            else:
                answer = ann.ask(messages)
            messages.append({"role": "assistant", "content": answer})
        until(partial(ann.has, len(messages) - 1))  # a client may go on before a turn is stored
        assert [text for _, text in ann.turns()] == [message["content"] for message in messages[1:]]
        assert len({note["session"] for note in ann.notes()}) == 1
        ann.ask(messages[:-1])  # another answer to the last message
        assert ann.turns()[6:] == [("assistant", "Answer number 4.")]

    def test_a_header_names_the_session(self, ann: User) -> None:
        ann.ask(asked("The ferry leaves at nine."), extra_headers={"Zettel-Session": "reise%2F1"})
        assert {note["session"] for note in ann.notes()} == {"reise/1"}

    def test_recalled_text_is_not_stored_again(self, ann: User, upstream: Upstream) -> None:
        ann.memory("POST", "/v1/events", {"content": "The spare key hangs behind the red barn door.", "speaker": "Bo"})
        upstream.reply = lambda request: system(request).removeprefix(HEAD) + "\n\nShall I fetch it?"
        ann.ask(asked("Where does the spare key of the barn hang?"))
        assert ann.turns()[2:] == [("assistant", "Shall I fetch it?")]

    def test_tool_calls_pass_and_the_answer_after_them_is_stored(self, ann: User, upstream: Upstream) -> None:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
        upstream.pieces = events(
            {"delta": {"role": "assistant", "content": None, "tool_calls": [call]}},
            {"delta": {}, "finish_reason": "tool_calls"},
        )
        upstream.released = threading.Semaphore(100)
        messages = asked("When is high tide at Risør?")
        chunks = list(ann.create(messages, stream=True))
        assert chunks[0].choices[0].delta.tool_calls[0].function.name == "tide"
        until(lambda: len(ann.turns()) == 1)
        upstream.pieces = []
        upstream.reply = lambda request: "At 14:20."
        del call["index"]
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"high": "14:20"}'},
        ]
        assert ann.ask(messages) == "At 14:20."
        assert ann.turns() == [("user", "When is high tide at Risør?"), ("assistant", "At 14:20.")]
        assert len({note["session"] for note in ann.notes()}) == 1


class TestStreams:
    def test_a_stream_passes_byte_for_byte_as_it_comes(self, server: Served, ann: User, upstream: Upstream) -> None:
        head, first, *rest = events(
            {"delta": {"role": "assistant", "content": "Blå "}}, {"delta": {"content": "hegre."}},
            {"delta": {}, "finish_reason": "stop"},
        )  # fmt: skip
        first = b": comment\r\n\r\n" + first
        cut = first.index(b"c3") if b"c3" in first else len(first) // 2
        upstream.pieces = [head, first[:cut], first[cut:], *rest]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        body = json.dumps({"model": MODEL, "stream": True, "messages": asked("Name the bird.")}).encode()
        headers = {"Authorization": f"Bearer {ann.key}", "Content-Type": "application/json", "Cookie": "a=b"}
        upstream.released.release()
        connection.request("POST", CHAT, body, headers)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["x-request-id"]) == (200, "req_7")
        assert answer.headers["content-type"] == "text/event-stream"
        for piece in upstream.pieces[1:]:
            upstream.released.release()
            assert answer.read(len(piece)) == piece  # before the next piece is sent
        assert answer.read() == b""
        connection.close()
        until(lambda: ann.turns() == [("user", "Name the bird."), ("assistant", "Blå hegre.")])

    def test_a_client_that_disconnects_ends_the_answer(self, ann: User, upstream: Upstream) -> None:
        upstream.pieces = events({"delta": {"content": "Once upon "}}, {"delta": {"content": "a time."}})
        upstream.released = threading.Semaphore(2)
        stream = ann.create(asked("My name is Solveig. Tell me a story."), stream=True)
        assert next(iter(stream)).choices[0].delta.content == "Once upon "
        stream.close()
        assert upstream.is_cut.wait(PATIENCE)
        until(lambda: ann.turns() == [("user", "My name is Solveig. Tell me a story.")])
        upstream.pieces = []
        ann.ask(asked("My name is Solveig. Tell me a story."))
        assert [speaker for speaker, _ in ann.turns()].count("assistant") == 1

    def test_a_client_that_disconnects_before_the_answer_leaves_nothing(self, ann: User, upstream: Upstream) -> None:
        upstream.pieces = events({"delta": {"content": "Never read."}})
        with pytest.raises(APIConnectionError):
            ann.create(asked("Are you there?"), timeout=0.5)
        assert upstream.is_cut.wait(PATIENCE)
        assert ann.turns() == []

    def test_an_error_within_a_stream_passes_and_nothing_is_stored(self, ann: User, upstream: Upstream) -> None:
        upstream.reply, upstream.cut_after = (lambda request: "one two three"), 2
        with pytest.raises(APIError, match="fell over"):
            list(ann.create(asked("Count."), stream=True))
        assert ann.turns() == []

    def test_a_stream_that_breaks_off_does_not_look_complete(self, ann: User, upstream: Upstream) -> None:
        head, first, *_ = events({"delta": {"content": "one "}})
        chunked = head.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        upstream.pieces = [chunked, b"%x\r\n%s\r\n" % (len(first), first)]
        upstream.released = threading.Semaphore(100)
        with pytest.raises(APIConnectionError):
            list(ann.create(asked("Count."), stream=True))
        assert ann.turns() == []


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "kind"), [(401, AuthenticationError), (429, RateLimitError), (500, InternalServerError)]
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_errors_of_the_upstream_pass_unchanged(
        self, ann: User, upstream: Upstream, status: int, kind: type[APIStatusError], stream: bool
    ) -> None:
        body = json.dumps(problem("the model  fell over")).encode()
        upstream.pieces = [
            b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nRetry-After: 7\r\nX-Request-Id: req_9\r\n"
            b"Set-Cookie: a=b\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
        ]
        upstream.released = threading.Semaphore(100)
        with pytest.raises(kind) as caught:
            ann.create(asked("Hello?"), stream=stream)
        answer = caught.value.response
        assert answer.content == body
        assert (answer.headers["retry-after"], answer.headers["x-request-id"]) == ("7", "req_9")
        assert "set-cookie" not in answer.headers
        assert ann.turns() == []

    def test_an_upstream_that_cannot_be_reached_is_named(self, tmp_path: Path) -> None:
        with served(tmp_path / "a.db", upstream=("http://127.0.0.1:9/v1", None)) as server:
            ann = User(server, "ann")
            with ann.client, pytest.raises(InternalServerError) as caught:
                ann.create(asked("Hello?"))
            assert caught.value.status_code == 503
            assert caught.value.body == {
                "type": "ModelUnavailable", "message": "the model at 127.0.0.1:9 did not answer (ConnectError)",
            }  # fmt: skip
            assert ann.turns() == []

    def test_the_upstream_answers_what_is_not_a_chat(self, ann: User, upstream: Upstream) -> None:
        upstream.pieces = [b"HTTP/1.1 400 X\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"]
        for body in ({"model": MODEL}, {"messages": ["Hello?"]}, []):
            upstream.released.release()
            answer = ann.memory("POST", CHAT, body)
            assert (answer.status, answer.body) == (400, {})
        assert ann.turns() == []

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_turn_that_cannot_be_stored_is_an_error(
        self, server: Served, ann: User, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        async def full(*_: Any, **__: Any) -> Any:
            raise StoreFull("the disk is full")

        monkeypatch.setattr(AsyncMemory, "add_many", full)
        body = {"model": MODEL, "stream": stream, "messages": asked("Hello?")}
        if stream:
            with pytest.raises(http.client.IncompleteRead):
                ann.memory("POST", CHAT, body)
        else:
            answer = ann.memory("POST", CHAT, body)
            assert (answer.status, answer.error) == (507, "StoreFull: the disk is full")

    def test_without_a_proxy_the_path_is_unknown(self, tmp_path: Path) -> None:
        with served(tmp_path / "a.db") as server:
            answer = server.asker(server.key("ann", ANN))("POST", CHAT, {"messages": asked("Hello?")})
            assert answer.status == 404


class TestWhoseMemory:
    @pytest.fixture
    def app_key(self, server: Served, request: pytest.FixtureRequest) -> str:
        return server.key(f"app of {request.node.name[:60]}".replace("\0", ""), EVERYBODY)

    def create(self, server: Served, key: str, text: str = "Hello?", **more: Any) -> Any:
        with OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0) as client:
            return client.chat.completions.create(model=MODEL, messages=asked(text), **more)  # type: ignore[call-overload]

    def test_two_users_at_once_have_two_memories(self, server: Served, upstream: Upstream, app_key: str) -> None:
        upstream.reply = lambda request: f"Noted for {request['user']}."
        rounds, users = 15, ("ann", "bo")
        names = {"ann": "Blue Heron", "bo": "Red Kite"}

        def talk(user: str) -> None:
            for n in range(rounds):
                text = f"My boat is called {names[user]}, and this is trip {n}. What is my boat called?"
                self.create(server, app_key, text, user=user)

        upstream.awaited = 2
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(talk, users))
        for request in upstream.requests:
            (other,) = {"ann", "bo"} - {request["user"]}
            assert names[other] not in json.dumps(request)
        recalled = [request for request in upstream.requests if HEAD in system(request)]
        assert len(recalled) >= 2 * (rounds - 1)
        asker = server.asker(app_key)
        for user in users:
            (other,) = {"ann", "bo"} - {user}
            notes = asker("GET", f"/v1/notes?tenant=acme&user={user}&limit=100").body["notes"]
            assert len(notes) >= rounds
            assert not any(names[other] in note["content"] or other in note["content"].split() for note in notes)

    def test_a_header_wins_over_the_field(self, server: Served, app_key: str) -> None:
        self.create(server, app_key, "Only Cleo knows.", user="u-1", extra_headers={"Zettel-User": "cl%C3%A9o"})
        notes = server.asker(app_key)("GET", "/v1/notes?tenant=acme&user=cl%C3%A9o").body["notes"]
        assert notes[0]["content"] == "Only Cleo knows."

    def test_a_chat_without_a_user_is_refused(self, server: Served, upstream: Upstream, app_key: str) -> None:
        with pytest.raises(UnprocessableEntityError, match="this chat has no user: name one in the header Zettel-User"):
            self.create(server, app_key)
        assert not upstream.requests

    def test_a_user_beyond_the_key_is_refused(self, server: Served, upstream: Upstream, app_key: str) -> None:
        own = server.key("only gil", Scope(user="gil"))
        with pytest.raises(PermissionDeniedError, match="this key does not open"):
            self.create(server, own, user="ann")
        with pytest.raises(PermissionDeniedError, match="this key does not open"):
            self.create(server, app_key, user="ann", extra_headers={"Zettel-Tenant": "other"})
        reader = server.key("reader", Scope(user="hal"), right="read")
        with pytest.raises(PermissionDeniedError, match="the right write"):
            self.create(server, reader)
        with pytest.raises(AuthenticationError):
            self.create(server, "sk-other")
        assert not upstream.requests

    @pytest.mark.parametrize("header", ["Zettel-User", "Zettel-Session", "Zettel-Tenant", "Zettel-Agent"])
    def test_an_ambiguous_or_empty_header_is_refused(self, server: Served, app_key: str, header: str) -> None:
        body = json.dumps({"messages": asked("Hello?"), "user": "ida"}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        for values, status in ((["a", "b"], 400), ([" "], 422), (["%FF"], 422), (["x" * 2000], 422)):
            connection.putrequest("POST", CHAT)
            connection.putheader("Authorization", f"Bearer {app_key}")
            connection.putheader("Content-Length", str(len(body)))
            for value in values:
                connection.putheader(header, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            assert answer.status == status, (values, answer.read())
            answer.read()
        connection.close()

    @pytest.mark.parametrize("user", ["", 7, "\0", "x" * 2000])
    def test_an_unusable_field_is_refused(self, server: Served, app_key: str, user: Any) -> None:
        answer = server.asker(app_key)("POST", CHAT, {"messages": asked("Hello?"), "user": user})
        assert answer.status == 422
        assert "the field user" in answer.error


class TestPrivacy:
    def test_keys_and_cookies_stay_on_their_side(self, ann: User, upstream: Upstream) -> None:
        upstream.pieces = [b"HTTP/1.1 400 X\r\nContent-Length: 2\r\nSet-Cookie: session=ann; Path=/\r\n\r\n{}"]
        upstream.released.release()
        with pytest.raises(APIStatusError):
            ann.ask(asked("Hello there."))
        upstream.pieces = []
        ann.ask(asked("Hello there."), extra_headers={"Cookie": "a=b", "OpenAI-Project": "p"})
        assert upstream.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
        assert upstream.headers["openai-project"] == "p"
        assert "cookie" not in upstream.headers
        assert not any(ann.key in value or name.startswith("zettel") for name, value in upstream.headers.items())

    def test_models_pass(self, ann: User, upstream: Upstream) -> None:
        assert [model.id for model in ann.client.models.list()] == ["scripted"]
        with pytest.raises(APIStatusError, match="unknown path"):
            ann.client.models.retrieve("meta/llama")
        assert upstream.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"

    @pytest.mark.parametrize("path", ["/../files", "/%2e%2e/files", "/a/..%2f..%2ffiles", "/."])
    def test_no_other_path_of_the_upstream_can_be_read(self, ann: User, upstream: Upstream, path: str) -> None:
        upstream.headers = {}
        assert ann.memory("GET", MODELS + path).status == 404
        assert not upstream.headers

    def test_logs_contain_no_message(self, ann: User, upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
        upstream.reply = lambda request: f"The owl of {SECRET} sleeps."
        with caplog.at_level(logging.DEBUG):
            ann.ask(asked(f"The safe of {SECRET} is green."))
            list(ann.create(asked(f"And the door of {SECRET}?"), stream=True))
            until(partial(ann.has, 3))
        zettel = [record for record in caplog.records if not record.name.startswith(("openai", "httpcore"))]
        assert zettel
        assert not any(SECRET in json.dumps(vars(record), default=str) for record in zettel)


def test_the_command_serves_chats(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    with TalkServer() as upstream:
        options = ("--user", "ann", "--proxy", upstream.url)
        with serving(store, *options, ZETTEL_PROXY_KEY=f"{UPSTREAM_KEY}\n") as (process, url):
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line == f"zettel: chat completions go to {upstream.url} with the key in ZETTEL_PROXY_KEY\n"
            with OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client:
                messages: Any = asked("My boat is called Blue Heron.")
                client.chat.completions.create(model=MODEL, messages=messages)
                answer = client.chat.completions.create(model=MODEL, messages=asked("What is my boat called?"))  # type: ignore[arg-type]
                assert answer.choices[0].message.content == "My boat is called Blue Heron."
            log = end_server(process, signal.SIGTERM)
        assert [entry["route"] for entry in log] == [CHAT, CHAT]
        assert upstream.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    with Memory(store, scope=Scope(user="ann")) as memory:
        assert len(memory.list().notes) == 3


@pytest.mark.parametrize("url", ["api.openai.com/v1", "ftp://a/v1", "https://ann:pw@a/v1", "https://a/v1?x=1", "http://[/"])
def test_an_unusable_upstream_is_refused(zettel: Any, url: str) -> None:
    result = zettel("serve", "--proxy", url)
    assert result.status == 2
    assert "is not the address of a model" in result.err
    assert "pw" not in result.err
