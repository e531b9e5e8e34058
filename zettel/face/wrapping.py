"""Giving a memory to a client of a language model: the one method that is no coroutine, and so is the same in both
faces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from zettel.face.finding import DEFAULT_TOKENS

if TYPE_CHECKING:
    from zettel.model import Scope

Client = TypeVar("Client")


class Wrapping:
    """What other people's clients are given."""

    def wrap(
        self,
        client: Client,
        *,
        scope: Scope | None = None,
        session: str | None = None,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Client:
        """The same client with this memory: it recalls before each chat completion, and remembers after it.

        ``client`` is an ``OpenAI()`` or ``AsyncOpenAI()``, another one with ``chat.completions.create``, the module
        ``litellm`` or its ``Router``; an ``AsyncMemory`` takes those that are awaited. What the core has and what a
        search for the user's last words finds goes to the model at the end of the system message, in at most
        ``max_tokens``; the messages that were handed in stay as they are. What the user said is remembered before the
        model is asked, and so also when that fails; the answer when it is whole. Nothing is remembered that was only
        recalled. ``session`` is the conversation that both belong to, by default a new one for each wrapped client;
        ``user`` and ``assistant`` are the names of who speaks. What the client raises comes as it is.
        Raises ``InvalidInput``; the wrapped calls, what ``search`` and ``add`` raise.
        """
        from zettel.integrations.wrap import wrap

        return wrap(
            cast(Any, self), client, scope=scope, session=session, user=user, assistant=assistant,
            max_tokens=max_tokens,
        )  # fmt: skip
