"""A client of a language model with a memory: ``memory.wrap(OpenAI())``, ``memory.wrap(litellm)``.

The wrapped client is the client, but that its chat completions are asked with what was recalled for them, and that what
is said is remembered: see ``zettel.integrations.turns``. Clients are told by what they can do, so those of others with
``chat.completions.create`` are taken too, and so is LiteLLM's router.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from zettel.arguments import checked
from zettel.async_memory import AsyncMemory
from zettel.errors import InvalidInput
from zettel.face.finding import DEFAULT_TOKENS
from zettel.face.opened import require_scope
from zettel.integrations.either import Either, reach, require_memory, wait
from zettel.integrations.turns import Conversation, Turn, said_in, text_of
from zettel.model import Scope

Client = TypeVar("Client")
Way = tuple[str, ...]

ASKS: frozenset[Way] = frozenset(
    {("chat", "completions", "create"), ("chat", "completions", "parse"), ("completion",), ("acompletion",)}
)
"""The ways to the functions that ask a model, from the client on."""
WAYS: frozenset[Way] = frozenset({("chat",), ("chat", "completions")})
"""What lies on these ways."""
PAST: frozenset[Way] = frozenset(
    {(*way, name) for way in [(), *WAYS] for name in ("with_raw_response", "with_streaming_response")}
    | {("chat", "completions", "stream")}
)
"""Other ways to ask a model: answers of another form, which a memory would not see."""
COPIES = ("copy", "with_options")
"""What makes another client of one."""


def wrap(
    memory: Either,
    client: Client,
    *,
    scope: Scope | None = None,
    session: str | None = None,
    user: str = "user",
    assistant: str = "assistant",
    max_tokens: int = DEFAULT_TOKENS,
) -> Client:
    """``Memory.wrap``, see there. Raises ``InvalidInput``."""
    require_memory(memory)
    require_scope(scope)
    asking = next((found for way in sorted(ASKS) if (found := _reached(client, way)) is not None), None)
    if asking is None:
        raise InvalidInput(
            f"{type(client).__name__} cannot be wrapped: hand in an OpenAI(), an AsyncOpenAI() or the module litellm"
        )
    if isinstance(memory, AsyncMemory) and _reached(client, ("acompletion",)) is None and not _is_async(asking):
        raise InvalidInput("an AsyncMemory has to be awaited: wrap an AsyncOpenAI(), or use a Memory")
    session = secrets.token_hex(4) if session is None else session
    conversation = Conversation(scope, session, user, assistant, max_tokens)
    for role in (user, assistant):
        checked({"content": "said", "role": role})
    return cast(Client, _Layer(client, (), functools.partial(_asking, memory, conversation)))


class _Layer:
    """A client, or a part of one that leads to what asks the model; all else is the client's own."""

    def __init__(self, inner: Any, way: Way, asking: Callable[[Any], Any]) -> None:
        vars(self).update(_inner=inner, _way=way, _asking=asking)

    @property  # type: ignore[misc]  # so that whoever looks for one of their clients finds it
    def __class__(self) -> Any:
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        way = (*self._way, name)
        if way in PAST:
            raise InvalidInput(
                f"a wrapped client has no {'.'.join(way)}, which would not be remembered: use "
                "chat.completions.create, or the client itself"
            )
        if way in ASKS:
            return self._asking(found)
        if found is not None and (way in WAYS or way == ("beta",)):
            return _Layer(found, way if way in WAYS else (), self._asking)
        if not self._way and name in COPIES and callable(found):
            return lambda *args, **kwargs: _Layer(found(*args, **kwargs), (), self._asking)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __dir__(self) -> Iterable[str]:
        return dir(self._inner)

    def __repr__(self) -> str:
        return f"<{self._inner!r} with a memory>"

    def __enter__(self) -> Any:
        self._inner.__enter__()
        return self

    def __exit__(self, *ending: Any) -> Any:
        return self._inner.__exit__(*ending)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *ending: Any) -> Any:
        return await self._inner.__aexit__(*ending)


def _asking(memory: Either, conversation: Conversation, call: Callable[..., Any]) -> Callable[..., Any]:
    """The function that asks a model, with a memory."""

    @functools.wraps(call)
    def asked(*args: Any, **kwargs: Any) -> Any:
        messages = _messages(args, kwargs)
        if messages is None:  # the client says best what is wrong with them
            return call(*args, **kwargs)
        turn = wait(memory, functools.partial(conversation.begin, messages))
        answer = call(*args[:1], *args[2:], **kwargs | {"messages": turn.messages})

        def end(said: str) -> None:
            wait(memory, functools.partial(conversation.end, turn, said))

        if kwargs.get("stream"):
            return _Stream(answer, end)
        end(_answered(answer))
        return answer

    @functools.wraps(call)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        messages = _messages(args, kwargs)
        if messages is None:
            return await call(*args, **kwargs)
        turn: Turn = await reach(memory, functools.partial(conversation.begin, messages))
        answer = await call(*args[:1], *args[2:], **kwargs | {"messages": turn.messages})

        async def end(said: str) -> None:
            await reach(memory, functools.partial(conversation.end, turn, said))

        if kwargs.get("stream"):
            return _AsyncStream(answer, end)
        await end(_answered(answer))
        return answer

    return awaited if _is_async(call) else asked


class _Heard:
    """A stream of chunks, as the client made it; what its first choice says is heard."""

    def __init__(self, inner: Any, end: Callable[[str], Any]) -> None:
        self._inner, self._end = inner, end
        self._said: list[str] | None = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _hear(self, chunk: Any) -> Any:
        for choice in getattr(chunk, "choices", None) or ():
            if self._said is not None and choice.index == 0 and choice.delta is not None:
                self._said.append(text_of(choice.delta.content))
        return chunk

    def _whole(self) -> str:
        """What was said, the first time that it is asked for."""
        said, self._said = "".join(self._said or ()), None
        return said


class _Stream(_Heard):
    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        try:
            return self._hear(next(self._inner))
        except StopIteration:
            if self._said is not None:
                self._end(self._whole())
            raise

    def __enter__(self) -> _Stream:
        self._inner.__enter__()
        return self

    def __exit__(self, *ending: Any) -> Any:
        return self._inner.__exit__(*ending)


class _AsyncStream(_Heard):
    def __aiter__(self) -> _AsyncStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._hear(await self._inner.__anext__())
        except StopAsyncIteration:
            if self._said is not None:
                await self._end(self._whole())
            raise

    async def __aenter__(self) -> _AsyncStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *ending: Any) -> Any:
        return await self._inner.__aexit__(*ending)


def _reached(client: Any, way: Way) -> Any:
    """What lies at the end of a way, if it can be called."""
    for name in way:
        client = getattr(client, name, None)
    return client if callable(client) else None


def _is_async(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(call))


def _messages(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The messages of a call, which LiteLLM takes as its second argument too; None if they are none."""
    given = kwargs["messages"] if "messages" in kwargs else args[1] if len(args) > 1 else None
    return list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else None


def _answered(answer: Any) -> str:
    """What the first choice of an answer says."""
    choices = getattr(answer, "choices", None)
    return said_in(choices[0].message).text if choices else ""
