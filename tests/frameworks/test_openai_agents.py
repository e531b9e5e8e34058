"""The OpenAI Agents SDK's ``Session`` protocol: compared with its SQLite session, and in its runner."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("agents")

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession, Session, SessionSettings
from agents.tool_context import ToolContext
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI

from tests.agent_server import AgentServer
from tests.frameworks.known import ANN, BOB, CHECKOUT
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.openai_agents import ZettelSession, memory_tools

CONVERSATION: list[Any] = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "What is in the picture?"},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A heron?"}],
     "encrypted_content": "gAAAA"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": \"the reeds\"}", "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "a grey heron, 0.97"},
    {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "A heron in the reeds.", "annotations": []}]},
    {"type": "message", "id": "m2", "role": "assistant", "status": "completed",
     "content": [{"type": "refusal", "refusal": "I cannot say more."}]},
]  # fmt: skip


SCOPE = ANN


def helper(agent: AgentServer, **more: Any) -> Agent[Any]:
    client = AsyncOpenAI(base_url=agent.url, api_key="none")
    return Agent("helper", instructions="Use memory.", model=OpenAIChatCompletionsModel("gpt-4o-mini", client), **more)


QUIET = RunConfig(tracing_disabled=True)


def texts(memory: Memory, **more: Any) -> list[str]:
    return [note.content for note in memory.list(**more).notes]


# --------------------------------------------------------------------------------------------------------------- agents


def test_a_session_continues_a_conversation_and_stores_it(memory: Memory, agent: AgentServer) -> None:
    async def work() -> None:
        bot = helper(agent, tools=memory_tools(memory))
        result = await Runner.run(bot, "Remember: Ann is allergic to walnuts.", session=ZettelSession(memory, "s1"),
                                run_config=QUIET)  # fmt: skip
        assert result.final_output == "Noted."
        items = await ZettelSession(memory, "s1").get_items()
        assert [item.get("type", item.get("role")) for item in items] == [
            "user", "function_call", "function_call_output", "message"
        ]  # fmt: skip
        result = await Runner.run(
            bot, "What is Ann allergic to?", session=ZettelSession(memory, "s1"), run_config=QUIET
        )
        assert "Ann is allergic to walnuts." in result.final_output
        sent = agent.requests[-2]["messages"]  # the conversation with the earlier tool calls
        assert [bot["role"] for bot in sent] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        result = await Runner.run(
            bot, "What is Ann allergic to?", session=ZettelSession(memory, "s2"), run_config=QUIET
        )
        assert "Ann is allergic to walnuts." in result.final_output
        assert len(agent.requests[-2]["messages"]) == 2  # a separate session

    asyncio.run(work())
    assert texts(memory) == [
        "Remember: Ann is allergic to walnuts.", "Ann is allergic to walnuts.", "Noted.",
        "What is Ann allergic to?", "What is Ann allergic to?",
    ]  # fmt: skip
    assert "Ann is allergic to walnuts." not in texts(memory, archived=True)[-1]


def test_the_session_equals_the_sqlite_session_of_the_sdk(memory: Memory, agent: AgentServer, tmp_path: Path) -> None:
    async def work(session: Session) -> list[Any]:
        bot = helper(agent)
        for question in ("Hello", "How are you?", "Goodbye"):
            await Runner.run(bot, question, session=session, run_config=QUIET)
        limited = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=2))
        await Runner.run(bot, "Once more", session=session, run_config=limited)
        sent = [len(request["messages"]) for request in agent.requests]
        return [await session.get_items(), await session.get_items(limit=3), sent]

    own = asyncio.run(work(SQLiteSession("s1", tmp_path / "sdk.db")))
    agent.requests.clear()
    assert asyncio.run(work(ZettelSession(memory, "s1"))) == own
    assert own[2] == [2, 4, 6, 4]


def test_the_session_works_inside_a_compaction_session(memory: Memory) -> None:
    async def work() -> None:
        inner = ZettelSession(memory, "s1")
        outer = OpenAIResponsesCompactionSession("s1", inner, client=AsyncOpenAI(api_key="none"))
        await outer.add_items(CONVERSATION)
        assert await outer.get_items() == await inner.get_items() == CONVERSATION
        assert await outer.pop_item() == CONVERSATION[-1]
        await outer.clear_session()
        assert await inner.get_items() == []

    asyncio.run(work())


def test_a_tool_returns_errors(memory: Memory) -> None:
    add = memory_tools(memory)[0]
    context: Any = ToolContext(None, tool_name=add.name, tool_call_id="c1", tool_arguments="{")
    assert asyncio.run(add.on_invoke_tool(context, "{")) == (
        '{"error": "the arguments of add_memory are not JSON: write one JSON object"}'
    )
    assert [tool.name for tool in memory_tools(memory, read_only=True)] == [
        "search_memories", "query_memories", "get_memory", "get_entity", "memory_history"
    ]  # fmt: skip


@dataclass
class User:
    user_id: str | None
    login: str = "bob"


def test_the_context_of_a_run_names_the_user(tmp_path: Path, agent: AgentServer) -> None:
    def search(memory: Memory, context: Any, **options: Any) -> str:
        bot = helper(agent, tools=memory_tools(memory, **options))
        return str(Runner.run_sync(bot, "Whose safe is green?", context=context, run_config=QUIET).final_output)

    with Memory(tmp_path / "zettel.db") as memory:
        for user in ("ann", "bob"):
            memory.add(f"The safe of {user} is green.", scope=Scope(user=user))
        for context in (User("bob"), {"user_id": "bob"}):
            assert search(memory, context) == "The safe of bob is green."
        assert search(memory, User("ann"), scope=ANN) == search(memory, None, scope=ANN) == "The safe of ann is green."
        by_login = search(memory, User("ann"), scope=lambda run: Scope(user=run.context.login))
        assert by_login == "The safe of bob is green."
        assert search(memory, None) == search(memory, {}) == "I do not know."
        for user, scope, error_text in (
            (None, None, "no user: set context.user_id"),
            ("", None, "must be the id of a user"),
            ("bob", ANN, "two users in one run"),
        ):
            with pytest.raises(Exception, match=error_text):
                search(memory, User(user), scope=scope)


# ------------------------------------------------------------------------------------------------------ the interface


@pytest.mark.parametrize("memory_class", [Memory, AsyncMemory])
def test_items_can_be_added_limited_popped_and_cleared(memory_class: Callable[..., Any], tmp_path: Path) -> None:
    async def work() -> None:
        memory = memory_class(tmp_path / "zettel.db")
        session, other = ZettelSession(memory, "s1", scope=ANN), ZettelSession(memory, "s2", scope=ANN)
        assert isinstance(session, Session)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([])
        items = copy.deepcopy(CONVERSATION)
        await session.add_items(items[:3])
        await other.add_items([{"role": "user", "content": "Elsewhere"}])
        await session.add_items(items[3:])
        assert items == CONVERSATION
        assert await session.get_items() == CONVERSATION
        assert [type(item) for item in await session.get_items()] == [dict] * len(CONVERSATION)
        for limit, expected in [(2, CONVERSATION[-2:]), (99, CONVERSATION), (0, []), (-1, [])]:
            assert await session.get_items(limit) == expected
        limited = ZettelSession(memory, "s1", scope=ANN, session_settings=SessionSettings(limit=3))
        assert await limited.get_items() == CONVERSATION[-3:]
        assert await limited.get_items(limit=1) == CONVERSATION[-1:]
        assert not await ZettelSession(memory, "s1", scope=BOB).get_items()
        assert await session.pop_item() == CONVERSATION[-1]
        await session.add_items([{"role": "user", "content": "Thanks"}])
        assert await session.get_items() == [*CONVERSATION[:-1], {"role": "user", "content": "Thanks"}]
        await session.clear_session()
        assert await session.get_items() == []
        assert await other.get_items() == [{"role": "user", "content": "Elsewhere"}]
        closed = memory.close()
        if closed is not None:
            await closed

    asyncio.run(work())


def test_messages_are_searchable_and_other_items_archived(memory: Memory) -> None:
    asyncio.run(ZettelSession(memory, "s1").add_items(CONVERSATION))
    notes = memory.list(session="s1").notes
    assert [(note.speaker, note.content) for note in notes] == [
        ("user", "What is in the picture?"), ("user", "[image]"), ("assistant", "A heron in the reeds."),
        ("assistant", "I cannot say more."),
    ]  # fmt: skip
    assert all(note.occurred_at is not None for note in notes)
    assert texts(memory, archived=True) == [
        "function_call_output", "function_call look", "reasoning", "message system"
    ]  # fmt: skip
    hits = memory.search("heron", archived=True)
    assert [hit.note.content for hit in hits if "heron" in hit.note.content] == ["A heron in the reeds."]


def test_an_answer_that_repeats_recalled_memories_is_archived(memory: Memory) -> None:
    def turn_items(name: str, answer: str) -> list[Any]:
        output = '{"memories": [{"text": "Ann is allergic to walnuts.", "id": "n_1"}]}'
        return [
            {"type": "function_call", "call_id": "c1", "name": name, "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": output},
            {"role": "assistant", "content": answer},
        ]

    for session, name, answer in [
        ("repeats", "search_memories", "Ann is allergic to walnuts!"),
        ("adds", "search_memories", "Ann is allergic to walnuts.\nSo leave them out of the cake."),
        ("elsewhere", "search_web", "Ann is allergic to walnuts."),
    ]:
        first, *remaining = turn_items(name, answer)
        asyncio.run(ZettelSession(memory, session).add_items([first]))
        asyncio.run(ZettelSession(memory, session).add_items(remaining))  # from another run or process
        assert texts(memory, session=session) == ([] if session == "repeats" else [answer])


def test_all_parts_of_a_long_repeating_answer_are_archived(memory: Memory) -> None:
    facts = [f"Ann keeps {n} hives of bees behind the old mill." for n in range(60)]
    recalled = json.dumps({"memories": [{"text": text} for text in facts]})
    items: list[Any] = [
        {"type": "function_call", "call_id": "c1", "name": "search_memories", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": recalled},
        {"role": "assistant", "content": "\n".join(facts)},
        {"role": "assistant", "content": "\n".join(facts) + "\nThat is all."},
    ]
    asyncio.run(ZettelSession(memory, "s1").add_items(items))
    assert "".join(texts(memory)) == items[-1]["content"]
    assert {note.parts for note in memory.list(role="assistant", archived=True).notes} == {2}
    assert asyncio.run(ZettelSession(memory, "s1").get_items()) == items


def test_items_are_unchanged_when_their_notes_change(memory: Memory) -> None:
    session = ZettelSession(memory, "s1")
    sentence = "Ann keeps {} hives of bees behind the old mill."
    messages: list[Any] = [{"role": "user", "content": sentence.format(n)} for n in (3, 3, 4)]
    asyncio.run(session.add_items(messages))
    memory.evolve()
    first = memory.list().notes[0]
    memory.update(first.id, content="Ann keeps bees.")
    memory.quarantine(memory.list().notes[-1].id, "not sure")
    assert asyncio.run(session.get_items()) == messages


def test_clear_session_deletes_only_its_items(memory: Memory) -> None:
    session = ZettelSession(memory, "s1")
    asyncio.run(session.add_items([{"role": "user", "content": "Ann keeps bees."}]))
    memory.add("Ann is allergic to walnuts.", session="s1")
    asyncio.run(session.clear_session())
    assert asyncio.run(session.get_items()) == []
    assert texts(memory) == ["Ann is allergic to walnuts."]


def test_concurrent_pops_return_each_item_once(memory: Memory) -> None:
    async def work() -> None:
        items: list[Any] = [{"role": "user", "content": f"Line {n} of the song."} for n in range(6)]
        await ZettelSession(memory, "s1").add_items(items)
        popped = await asyncio.gather(*(ZettelSession(memory, "s1").pop_item() for _ in range(8)))
        returned_items = [item for item in popped if item is not None]
        assert sorted(str(item["content"]) for item in returned_items) == [item["content"] for item in items]  # type: ignore[typeddict-item]
        assert not await ZettelSession(memory, "s1").get_items()

    asyncio.run(work())


def test_adding_items_tolerates_concurrent_deletes_and_archiving(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error the SDK would add the items again."""
    archive, first = AsyncMemory.archive, True

    async def concurrent_archive(self: AsyncMemory, id: str, **more: Any) -> Any:
        nonlocal first
        if first:  # another run popped the item
            await self.delete(id, **more)
        else:  # another run archived the item
            await archive(self, id, **more)
        first = False
        return await archive(self, id, **more)

    monkeypatch.setattr(AsyncMemory, "archive", concurrent_archive)
    calls: list[Any] = [{"type": "function_call", "name": f"look_{n}"} for n in range(3)]
    session = ZettelSession(memory, "s1")
    asyncio.run(session.add_items([*calls, {"role": "user", "content": "Hello"}]))
    assert asyncio.run(session.get_items()) == [*calls[1:], {"role": "user", "content": "Hello"}]
    assert texts(memory) == ["Hello"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.dictionaries(st.text(), JSON, max_size=3) | st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | JSON, "content": JSON},
    optional={"type": JSON, "name": JSON},
)


@given(items=st.lists(ITEMS, max_size=4))
@settings(max_examples=10, deadline=None)
def test_any_item_is_returned_exactly(module_memory: Memory, items: list[Any]) -> None:
    async def work() -> None:
        session = ZettelSession(module_memory, uuid4().hex)
        await session.add_items(items)
        assert await session.get_items() == items

    asyncio.run(work())


def test_an_item_above_the_content_limit_is_returned_exactly(memory: Memory, small_content_limit: int) -> None:
    session = ZettelSession(memory, "s1")
    messages: list[Any] = [{"role": "user", "content": "The heron stands in the reeds. " * 1000}]
    asyncio.run(session.add_items(messages))
    assert asyncio.run(session.get_items()) == messages
    assert "heron" in memory.search("Where is the heron?", 1)[0].note.content


def test_wrong_input_raises_one_line_errors(memory: Memory) -> None:
    for id in ("", "  ", 7, None, "x\x00"):
        with pytest.raises(InvalidInput):
            ZettelSession(memory, id)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="got str"):
        ZettelSession("zettel.db", "s1")  # type: ignore[arg-type]
    session = ZettelSession(memory, "s1")
    for item, error in [("Hello", "must be a dict"), ({"role": "user", "content": {1, 2}}, "item.content is a set"),
                       ({"role": "user", "content": "x", "n": float("nan")}, "nan")]:  # fmt: skip
        with pytest.raises(InvalidInput, match=error) as error_info:
            asyncio.run(session.add_items([{"role": "user", "content": "first"}, item]))  # type: ignore[list-item]
        assert "\n" not in str(error_info.value)
    assert asyncio.run(session.get_items()) == []  # nothing is stored after an error


def test_the_example_prints_its_answers(run_example: Callable[..., str]) -> None:
    printed = run_example(CHECKOUT / "examples" / "agents_openai_agents.py")
    assert printed.splitlines() == [
        "monday: Remember: Ann is allergic to walnuts.",
        "  Noted.",
        "friday: What is Ann allergic to?",
        "  Remember: Ann is allergic to walnuts.",
        "Stored messages:",
        "  monday, user: Remember: Ann is allergic to walnuts.",
        "  None, None: Ann is allergic to walnuts.",
        "  monday, assistant: Noted.",
        "  friday, user: What is Ann allergic to?",
    ]
