"""Provider for Vectorize's Agent Memory Benchmark (AMB), which imports this module: see docs/how-to/harnesses.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_bench.memory.base import MemoryProvider
from memory_bench.models import Document

from zettel import Event, Hit, Memory, Scope
from zettel.errors import InvalidInput

STORE = "zettel.db"
HITS_PER_DOCUMENT = 5
"""Searched hits for each returned document: AMB asks for k documents, and zettel finds their messages."""
DEFAULT_USER = "benchmark"
"""Scope of documents without a user."""
_TURN = re.compile(r"^(?:\[[^\]\n]*\] )?(User|Assistant|System|Tool): ", re.MULTILINE)
"""Begin of a message in a document that is plain text, as in AMB's BEAM: ``[March-15-2024 | Turn 3] User: …``."""


class ZettelProvider(MemoryProvider):  # type: ignore[misc]
    """A zettel store per run, and in it a scope per user.

    A document becomes one event per message, in a session with the document's id. ``retrieve`` returns the documents
    of the best hits, each with the messages that were found in it, in their order.
    """

    name = "zettel"
    description = "Hybrid search with a graph walk over raw messages in an embedded store; no language model."
    kind = "local"

    def __init__(self) -> None:
        self._memory: Memory | None = None

    def prepare(self, store_dir: Path, unit_ids: set[str] | None = None, reset: bool = True) -> None:
        """Open the store in a folder, which ``reset`` empties first."""
        self.cleanup()
        store_dir.mkdir(parents=True, exist_ok=True)
        if reset:
            for file in store_dir.glob(f"{STORE}*"):
                file.unlink()
        self._memory = Memory(store_dir / STORE)

    def cleanup(self) -> None:
        """Close the store."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def ingest(self, documents: list[Document]) -> None:
        """Add documents, and wait until they are linked."""
        memory = self._opened()
        by_user: dict[str, list[Event]] = {}
        for document in documents:
            by_user.setdefault(document.user_id or DEFAULT_USER, []).extend(_events(document))
        for user, events in by_user.items():
            memory.add_many(events, scope=Scope(user=user))
        memory.flush()

    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Document], dict[str, Any] | None]:
        """Return at most ``k`` documents, best first, and no raw response, so that AMB's prompts contain them."""
        scope = Scope(user=user_id or DEFAULT_USER)
        hits = self._opened().search(query, k * HITS_PER_DOCUMENT, now=query_timestamp, log=False, scope=scope)
        found: dict[str, list[Hit]] = {}
        for hit in hits:
            found.setdefault(hit.note.session or hit.note.id, []).append(hit)
        return [
            Document(id=id, content=_text(of), user_id=user_id, timestamp=_day(of[0]) or None)
            for id, of in list(found.items())[:k]
        ], None

    def _opened(self) -> Memory:
        if self._memory is None:
            raise InvalidInput("the provider has no store: call prepare(store_dir) first")
        return self._memory


def _events(document: Document) -> Iterator[Event]:
    for place, message in enumerate(_messages(document)):
        content = message.get("content") or message.get("text") or ""
        if caption := message.get("blip_caption"):
            content += f" [image: {caption}]"
        if content.strip():
            yield Event(
                content=content,
                external_id=f"{document.id}:{place}",
                session=document.id,
                occurred_at=document.timestamp,
                role=message.get("role"),
                speaker=message.get("speaker"),
            )


def _messages(document: Document) -> list[dict[str, Any]]:
    """Return the messages of a document, which AMB passes as a list, as JSON or as text."""
    messages: Any = document.messages
    if not messages and document.content.startswith("["):
        with suppress(ValueError):
            messages = json.loads(document.content)
    if isinstance(messages, list) and messages and all(isinstance(message, dict) for message in messages):
        return messages
    begins = list(_TURN.finditer(document.content))
    if not begins:
        return [{"content": document.content, "role": "document"}]
    ends = [*(begin.start() for begin in begins[1:]), len(document.content)]
    return [
        {"role": begin[1].lower(), "content": document.content[begin.end() : end].strip()}
        for begin, end in zip(begins, ends, strict=True)
    ]


def _text(hits: Sequence[Hit]) -> str:
    """Return the found messages of one document, in their order, under their day."""
    lines = [_day(hits[0])] if _day(hits[0]) else []
    for hit in sorted(hits, key=lambda hit: hit.note.seq):
        writer = hit.note.speaker or hit.note.role
        lines.append(f"{writer}: {hit.note.content}" if writer else hit.note.content)
    return "\n".join(lines)


def _day(hit: Hit) -> str:
    return hit.note.occurred_at.date().isoformat() if hit.note.occurred_at else ""
