"""Storage of the turns of coding agents: what people and agents wrote, without the calls and results of tools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from zettel.core.arguments import checked
from zettel.core.privacy import SecretGuard
from zettel.model import Event, Scope
from zettel.transcripts import choose
from zettel.transcripts.formats.agent_turns import written_text
from zettel.transcripts.projects import PROJECT

from .protocols import Hook

if TYPE_CHECKING:
    from zettel.async_memory import AsyncMemory

BATCH = 500
"""Turns in one transaction."""

_REDACT = SecretGuard("redact")


class Capture:
    """Stores the turns of transcripts into one memory; each turn once, by its id in the transcript."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory
        self._stored: dict[str, set[str | None]] = {}
        """Ids of the turns that this process stored, by transcript; the memory recognises the others."""

    async def store(self, path: str, format: str, scope: Scope) -> int:
        """Store the new turns of a transcript, with secrets redacted; return their number.

        Raises ``ZettelError``, ``OSError``.
        """
        stored = self._stored.setdefault(path, set())
        turns = await anyio.to_thread.run_sync(lambda: list(turns_of(Path(path), format)))
        new = [turn for turn in turns if turn.external_id not in stored]
        await self.add(new, scope)
        stored.update(turn.external_id for turn in new)
        return len(new)

    async def add(self, turns: Sequence[Event], scope: Scope) -> None:
        """Store turns with secrets redacted; skip those whose id is stored. Raises ``ZettelError``."""
        for start in range(0, len(turns), BATCH):
            events = [_REDACT.event(turn).value for turn in turns[start : start + BATCH]]
            await self._memory.add_many_report(events, on_conflict="skip", scope=scope)


def turns_of(path: Path, format: str) -> Iterator[Event]:
    """Yield the turns of a transcript that contain text of a person or an agent; damaged lines are skipped."""
    for record in choose(path, format).read(path):
        if isinstance(record, Event) and record.role in ("user", "assistant") and record.content.strip():
            yield record.model_copy(update={"payload": None})


def turn_of(hook: Hook) -> Event | None:
    """Return the turn in the input of an event, or None if it is empty. Raises ``InvalidEvent``."""
    role = "assistant" if hook.reply else "user"
    content = written_text(hook.reply or hook.prompt)
    if not content.strip():
        return None
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest()
    id = "/".join(filter(None, (hook.session, hook.turn, role, digest)))
    return checked({
        "content": content, "role": role, "session": hook.session, "id": id if hook.turn else None,
        "occurred_at": datetime.now(timezone.utc), "metadata": {PROJECT: hook.folder} if hook.folder else {},
    })  # fmt: skip
