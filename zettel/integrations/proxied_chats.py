"""Recalls memories for chats that pass through the proxy of a server, and stores their turns after the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import require_name
from zettel.core.messages import field_of
from zettel.core.principals import acting_as
from zettel.integrations.conversation_turns import (
    ANSWERING,
    HEAD,
    SYSTEM,
    Conversations,
    Turn,
    message_text,
    prepare,
    tokens_left,
)
from zettel.model import Scope
from zettel.model.hits import DEFAULT_TOKENS

USER, ASSISTANT = "user", "assistant"
"""The speakers of stored turns."""
_PRINCIPAL = "adapter:proxy"

Message = Mapping[str, Any]


class ProxiedChats:
    """The conversations of all users of a server."""

    def __init__(self) -> None:
        self._conversations = Conversations(None, USER, ASSISTANT, DEFAULT_TOKENS)

    async def begin(
        self, memory: AsyncMemory, messages: Sequence[Message], scope: Scope, session: str | None
    ) -> ProxiedChat:
        """Recall memories for a chat completion with these ``messages``. Nothing is stored yet.

        Without ``session``, the conversation is recognised by its first exchange. Raises ``InvalidInput``, and what
        ``search`` raises.
        """
        self._conversations.of(scope, session)  # validates the name of the session
        with acting_as(_PRINCIPAL):
            turn = await prepare(messages, scope, USER, tokens_left(DEFAULT_TOKENS, HEAD), memory)
        for speaker, _ in turn.new_texts:
            require_name("the name of a message", speaker)
        return ProxiedChat(memory, self._conversations, messages, scope, session, turn)


class ProxiedChat(NamedTuple):
    """One chat completion, before its answer."""

    memory: AsyncMemory
    conversations: Conversations
    received: Sequence[Message]
    scope: Scope
    session: str | None
    turn: Turn

    @property
    def messages(self) -> list[Message]:
        """The messages to send to the model, with the recalled memories."""
        return self.turn.messages

    async def store(self, answer: str, calls: Sequence[str], finished_at: datetime | None) -> None:
        """Store the new messages, and the answer if it is finished. ``calls`` are the ids of its tool calls.

        A client may send its next message before this turn is stored; ``finished_at`` keeps them in order.
        Raises what ``add_many`` and ``feedback`` raise.
        """
        session = self.session or session_of(self.received, answer, calls)
        conversation = self.conversations.of(self.scope, session)
        with acting_as(_PRINCIPAL):
            await conversation.remember(self.turn, self.memory)
            if finished_at is not None:
                await conversation.end(self.turn, answer, self.memory, finished_at)


def session_of(messages: Sequence[Message], answer: str, calls: Sequence[str]) -> str:
    """Return the session of a conversation: a hash of its first exchange, which later requests contain.

    ``answer`` and ``calls`` are the answer to these messages, which counts if it is the first one.
    """
    first: list[list[Any]] = []
    for message in messages:
        role, text, _ = message_text(message)
        if role in SYSTEM:  # may contain the current time
            continue
        first.append([role, text.strip(), _calls(message)])
        if role in ANSWERING:
            break
    else:
        first.append([ASSISTANT, answer.strip(), list(calls)])
    return f"chat-{hashlib.blake2b(json.dumps(first).encode(), digest_size=8).hexdigest()}"


def _calls(message: Message) -> list[Any]:
    calls = message.get("tool_calls")
    return [field_of(call, "id") for call in calls] if isinstance(calls, list) else []
