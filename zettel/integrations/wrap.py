"""Wraps a language model client with a memory: ``zettel.wrap(memory, OpenAI())``, ``zettel.wrap(memory, litellm)``.

The wrapped client recalls memories before each chat completion and stores the conversation; see
``zettel.integrations.conversation_turns``. Any client with ``chat.completions.create`` works, and so does LiteLLM's
router.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import checked, require_scope
from zettel.core.messages import text_of
from zettel.errors import InvalidInput
from zettel.integrations.conversation_turns import Conversation, Turn, message_text
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.model import Scope
from zettel.model.hits import DEFAULT_TOKENS

Client = TypeVar("Client")
Path = tuple[str, ...]

_ADAPTER = Adapter("wrap")
CALLS: frozenset[Path] = frozenset(
    {("chat", "completions", "create"), ("chat", "completions", "parse"), ("completion",), ("acompletion",)}
)
"""Attribute paths from the client to the functions that call a model."""
PREFIXES: frozenset[Path] = frozenset({("chat",), ("chat", "completions")})
"""Prefixes of these paths."""
UNSUPPORTED: frozenset[Path] = frozenset(
    {(*path, name) for path in [(), *PREFIXES] for name in ("with_raw_response", "with_streaming_response")}
    | {("chat", "completions", "stream")}
)
"""Paths to functions whose answers have another form, which the memory cannot read."""
COPIES = ("copy", "with_options")
"""Methods that return a copy of the client."""


def wrap(
    memory: AnyMemory,
    client: Client,
    *,
    scope: Scope | None = None,
    session: str | None = None,
    user: str = "user",
    assistant: str = "assistant",
    max_tokens: int = DEFAULT_TOKENS,
) -> Client:
    """Return the client with this memory: it recalls before each chat completion and stores the conversation.

    The core memory and the hits for the user's last messages are appended to the system message; the caller's
    messages are not modified. User messages are stored before the model call, so a failing model does not lose them;
    the answer is stored when it is complete. Recalled text is not stored again. Errors of the client pass through
    unchanged.

    Args:
        memory: The memory. An ``AsyncMemory`` requires an async client.
        client: An ``OpenAI()`` or ``AsyncOpenAI()``, another client with ``chat.completions.create``, the module
            ``litellm`` or its ``Router``.
        scope: The scope of the memory's calls; by default the memory's own.
        session: The name of the conversation; by default a new one for each wrapped client.
        user: The speaker of user messages.
        assistant: The speaker of answers.
        max_tokens: The greatest length of the recalled text, in tokens.

    Returns:
        A client with the same methods.

    Raises:
        InvalidInput: The client is unknown, or blocking where the memory is asynchronous. The wrapped calls also
            raise what ``search`` and ``add`` raise.

    Examples:
        >>> from openai import OpenAI
        >>> from zettel import wrap
        >>> client = wrap(memory, OpenAI(api_key="sk-..."), session="chat")
    """
    require_memory(memory)
    require_scope(scope)
    function = next((call for path in sorted(CALLS) if (call := _callable_at(client, path)) is not None), None)
    if function is None:
        raise InvalidInput(
            f"{type(client).__name__} cannot be wrapped: pass an OpenAI(), an AsyncOpenAI() or the module litellm"
        )
    if isinstance(memory, AsyncMemory) and _callable_at(client, ("acompletion",)) is None and not _is_async(function):
        raise InvalidInput("an AsyncMemory has to be awaited: wrap an AsyncOpenAI(), or use a Memory")
    session = secrets.token_hex(4) if session is None else session
    conversation = Conversation(scope, session, user, assistant, max_tokens)
    for speaker in (user, assistant):
        checked({"content": "text", "speaker": speaker})
    return cast(Client, _Proxy(client, (), functools.partial(_with_memory, memory, conversation)))


class _Proxy:
    """Forwards attributes to a client, or to a part of one, and wraps the functions that call a model."""

    def __init__(self, inner: Any, path: Path, wrap_call: Callable[[Any], Any]) -> None:
        vars(self).update(_inner=inner, _path=path, _wrap_call=wrap_call)

    @property  # type: ignore[misc]  # isinstance() sees the client's own class
    def __class__(self) -> Any:
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        path = (*self._path, name)
        if path in UNSUPPORTED:
            raise InvalidInput(
                f"a wrapped client does not support {'.'.join(path)}, which would not be remembered: use "
                "chat.completions.create, or the unwrapped client"
            )
        if path in CALLS:
            return self._wrap_call(value)
        if value is not None and (path in PREFIXES or path == ("beta",)):
            return _Proxy(value, path if path in PREFIXES else (), self._wrap_call)
        if not self._path and name in COPIES and callable(value):
            return lambda *args, **kwargs: _Proxy(value(*args, **kwargs), (), self._wrap_call)
        return value

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


def _with_memory(memory: AnyMemory, conversation: Conversation, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a model with recalled memories and stores the conversation."""

    @functools.wraps(call)
    def call_sync(*args: Any, **kwargs: Any) -> Any:
        messages = _messages(args, kwargs)
        if messages is None:  # the client reports the error
            return call(*args, **kwargs)
        turn = _ADAPTER.run_sync(memory, functools.partial(conversation.begin, messages))
        answer = call(*args[:1], *args[2:], **kwargs | {"messages": turn.messages})

        def end(text: str) -> None:
            _ADAPTER.run_sync(memory, functools.partial(conversation.end, turn, text))

        if kwargs.get("stream"):
            return _Stream(answer, end)
        end(_answer_text(answer))
        return answer

    @functools.wraps(call)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        messages = _messages(args, kwargs)
        if messages is None:
            return await call(*args, **kwargs)
        turn: Turn = await _ADAPTER.run_async(memory, functools.partial(conversation.begin, messages))
        answer = await call(*args[:1], *args[2:], **kwargs | {"messages": turn.messages})

        async def end(text: str) -> None:
            await _ADAPTER.run_async(memory, functools.partial(conversation.end, turn, text))

        if kwargs.get("stream"):
            return _AsyncStream(answer, end)
        await end(_answer_text(answer))
        return answer

    return call_async if _is_async(call) else call_sync


class _RecordedStream:
    """A client's stream of chunks that records the text of the first choice."""

    def __init__(self, inner: Any, end: Callable[[str], Any]) -> None:
        self._inner, self._end = inner, end
        self._texts: list[str] | None = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _record(self, chunk: Any) -> Any:
        for choice in getattr(chunk, "choices", None) or ():
            if self._texts is not None and choice.index == 0 and choice.delta is not None:
                self._texts.append(text_of(choice.delta.content))
        return chunk

    def _take_text(self) -> str:
        """Return the recorded text and stop recording."""
        text, self._texts = "".join(self._texts or ()), None
        return text


class _Stream(_RecordedStream):
    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        try:
            return self._record(next(self._inner))
        except StopIteration:
            if self._texts is not None:
                self._end(self._take_text())
            raise

    def __enter__(self) -> _Stream:
        self._inner.__enter__()
        return self

    def __exit__(self, *ending: Any) -> Any:
        return self._inner.__exit__(*ending)


class _AsyncStream(_RecordedStream):
    def __aiter__(self) -> _AsyncStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._record(await self._inner.__anext__())
        except StopAsyncIteration:
            if self._texts is not None:
                await self._end(self._take_text())
            raise

    async def __aenter__(self) -> _AsyncStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *ending: Any) -> Any:
        return await self._inner.__aexit__(*ending)


def _callable_at(client: Any, path: Path) -> Any:
    """Return the callable at an attribute path, or None."""
    for name in path:
        client = getattr(client, name, None)
    return client if callable(client) else None


def _is_async(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(call))


def _messages(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Return the messages of a call, also when passed as LiteLLM's second argument; None if they are invalid."""
    messages = kwargs["messages"] if "messages" in kwargs else args[1] if len(args) > 1 else None
    return list(messages) if isinstance(messages, Iterable) and not isinstance(messages, (str, bytes)) else None


def _answer_text(answer: Any) -> str:
    """Return the text of the first choice of an answer."""
    choices = getattr(answer, "choices", None)
    return message_text(choices[0].message).text if choices else ""
