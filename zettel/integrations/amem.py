"""A-MEM's API for programs that were written for it: only the import changes.

Each method does what A-MEM's documentation promises, even where A-MEM's code differs: notes are durable, a new system
does not delete an older one, links refer to note ids and are followed, changed notes are indexed again, and failures
raise errors instead of returning empty lists.

Paper: Xu et al. 2025, "A-MEM: Agentic Memory for LLM Agents" (arXiv:2502.12110).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from zettel.core.arguments import require_storable
from zettel.core.decisions import BY_HAND
from zettel.core.principals import acting_as
from zettel.errors import EventDeleted, IdentityConflict, InvalidInput, NotFound
from zettel.integrations.sync_or_async import run_sync
from zettel.integrations.tool_answers import history_answer
from zettel.integrations.whole_events import correct, parts_of, whole_of
from zettel.llm.lite import LiteLLM
from zettel.memory import Memory
from zettel.model import Hit, LinkType, Note, Scope
from zettel.search.explain import REVERSED
from zettel.transcripts.formats.amem import time_of

MODEL_NAME = "all-MiniLM-L6-v2"
"""A-MEM's default embedding model; it selects the embedder that zettel ships."""
DEFAULTS = (MODEL_NAME, "openai", "gpt-4o-mini", None, "zettel.db")
"""Defaults of model_name, llm_backend, llm_model, api_key and url."""
BACKENDS = {"openai": "openai/", "ollama": "ollama_chat/", "openrouter": "openrouter/"}
"""LiteLLM prefixes of A-MEM's backends."""
STAMP = "%Y%m%d%H%M"
"""A-MEM's time format."""
Uses = dict[str, tuple[int, datetime]]
"""Per note: the number of searches that returned it, and the time of the last one."""
UNSORTED = "Uncategorized"
"""Default category of a note."""
PAGE = 200
"""Notes per page."""

_TEXT_FIELDS = ("content", "context", "category")
_SETTABLE = (*_TEXT_FIELDS, "keywords", "tags", "links")
_ID = "id"  # metadata key: the caller's id
_TIMESTAMP = "timestamp"  # metadata key: the caller's time, if it differs from occurred_at in STAMP format


@dataclass
class MemoryNote:
    """A copy of a note in A-MEM's form; change the stored note with ``AgenticMemorySystem.update``.

    ``links`` are the ids of notes that a person, an agent or a language model linked. ``timestamp`` is the given text,
    or the time of the event (UTC). ``retrieval_count`` counts the logged searches that returned the note and later
    searches of this system; ``last_accessed`` is the time of the last one. ``evolution_history`` contains the given
    entries, then a dict for each recent change: version, time, author, reason and fields.
    """

    content: str
    id: str
    keywords: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    context: str = ""
    category: str = UNSORTED
    tags: list[str] = field(default_factory=list)
    timestamp: str = ""
    last_accessed: str = ""
    retrieval_count: int = 0
    evolution_history: list[Any] = field(default_factory=list)


class AgenticMemorySystem:
    """A memory with the methods of A-MEM's class of the same name.

    ``memory`` is a ``Memory``; by default a new one is opened in the file ``url`` with A-MEM's arguments.
    ``model_name`` is an embedding model; A-MEM's default selects the shipped embedder. ``llm_backend`` (openai,
    ollama, openrouter; None: no model), ``llm_model`` and ``api_key`` choose the language model that annotates notes.
    After every ``evo_threshold`` notes of the scope, ``Memory.evolve`` runs in the background;
    ``consolidate_memories`` runs it now. Raises ``InvalidInput``, and what ``Memory`` raises.
    """

    def __init__(
        self,
        memory: Memory | str | None = None,
        llm_backend: str | None = DEFAULTS[1],
        llm_model: str = DEFAULTS[2],
        evo_threshold: int = 100,
        api_key: str | None = DEFAULTS[3],
        *,
        model_name: str = DEFAULTS[0],
        url: str | Path = DEFAULTS[4],
        scope: Scope | None = None,
    ) -> None:
        if not isinstance(evo_threshold, int) or evo_threshold < 1:
            raise InvalidInput(f"evo_threshold must be 1 or more notes, got {evo_threshold!r}")
        if isinstance(memory, str):  # A-MEM's own first argument
            model_name = memory
        if memory is None or isinstance(memory, str):
            llm = None if llm_backend is None else _model(llm_backend, llm_model, api_key)
            self.memory = Memory(url, llm=llm, embedder=_embedder(model_name), scope=scope)
        elif not isinstance(memory, Memory):
            raise InvalidInput(f"memory must be a Memory, got {type(memory).__name__}")
        elif (model_name, llm_backend, llm_model, api_key, url) != DEFAULTS:
            raise InvalidInput("a Memory has its own models and file: pass these arguments to Memory instead")
        else:
            self.memory = memory
        self.scope = scope or self.memory.scope
        self.evo_threshold = evo_threshold
        self._event_count: int | None = None  # read from the store by the first add_note
        self._uses: Uses | None = None  # read from the search log by the first read

    @property
    def memories(self) -> Mapping[str, MemoryNote]:
        """A live view of all notes by id, in order of arrival."""
        return _Memories(self)

    @acting_as("adapter:amem")
    def add_note(self, content: str, time: str | None = None, **fields: Any) -> str:
        """Store a note and return its id. Deleted content can be added again.

        ``time`` (or ``timestamp``) is 202405011830 or ISO 8601, by default now. For any other text the note has no
        date, and the text is stored. ``keywords``, ``tags``, ``context``, ``category``, ``links`` (unknown ids are left
        out), ``id`` and ``evolution_history`` are stored unchanged. Missing fields are derived from the content and
        written by the language model. Raises ``InvalidInput``, and what ``Memory.add`` raises.
        """
        timestamp = fields.pop("timestamp", None) if time is None else time
        history = fields.pop("evolution_history", None)
        own_id = fields.pop(_ID, None)
        own_id = None if own_id is None else str(own_id)
        for name in ("retrieval_count", "last_accessed"):  # this system counts them itself
            fields.pop(name, None)
        values = _checked({name: value for name, value in fields.items() if value is not None})
        duplicate = InvalidInput(f"there is a note {own_id!r} already: change it with update, or give another id")
        if own_id is not None and self._find(own_id, archived=False) is not None:
            raise duplicate
        when = datetime.now(timezone.utc) if timestamp is None else time_of(timestamp)
        metadata = {_ID: own_id, "category": values.pop("category", None)}
        if timestamp is not None and (when is None or when.strftime(STAMP) != timestamp):
            metadata[_TIMESTAMP] = timestamp
        event: dict[str, Any] = {
            "content": content,
            "occurred_at": when,
            "metadata": {name: str(value) for name, value in metadata.items() if value is not None},
            "payload": {"evolution_history": history} if history else None,
        }
        try:
            id = self.memory.add(**event, id=own_id, scope=self.scope)
        except IdentityConflict:  # the note is archived
            raise duplicate from None
        except EventDeleted:  # the metadata contains the caller's id, so the event may have another one
            if own_id is not None and self._find(own_id) is not None:
                raise duplicate from None
            id = self.memory.add(**event, id=f"{own_id or ''}#{secrets.token_hex(8)}", scope=self.scope)
        self._set(id, values)
        count = self._event_count
        self._event_count = self.memory.stats(scope=self.scope)["events"] if count is None else count + 1
        if self._event_count % self.evo_threshold == 0:
            self.memory.evolve_later(scope=self.scope)
        return own_id or id

    def read(self, memory_id: str) -> MemoryNote | None:
        """Return the note with this id, or None."""
        note = self._find(memory_id)
        return None if note is None else self._memory_note(note)

    @acting_as("adapter:amem")
    def update(self, memory_id: str, **fields: Any) -> bool:
        """Set fields: ``content``, ``keywords``, ``tags``, ``context``, ``category``, ``links``.

        Returns False for an unknown note. ``links`` must contain all present links. ``Memory.history`` and
        ``Memory.revert`` give access to former versions. Raises ``InvalidInput``.
        """
        note = self._find(memory_id)
        if note is None:
            return False
        values = _checked(fields)
        links = self._links(self._parts(note)) if "links" in values else []
        if missing := sorted(set(links) - set(values.get("links", links))):
            raise InvalidInput(f"update cannot remove the links to {', '.join(missing)}: use Memory.revert")
        if "category" in values:
            values["metadata"] = note.metadata | {"category": values.pop("category")}
        self._set(note.id, values, links)
        return True

    @acting_as("adapter:amem")
    def delete(self, memory_id: str) -> bool:
        """Destroy a note and everything derived from it; return False if there is none."""
        note = self._find(memory_id)
        if note is None:
            return False
        self.memory.delete(note.id, scope=self.scope)
        return True

    def search(self, query: str, k: int = 5) -> list[dict[str, Any]]:
        """Return the best ``k`` notes: ``id``, ``content``, ``context``, ``keywords`` and ``score``.

        ``score`` is calibrated from 0 to 1, higher is better; A-MEM's code returns a distance.
        """
        return [{"id": _id(hit.note), "content": hit.note.content, "context": hit.note.context,
                 "keywords": list(hit.note.keywords), "score": hit.score} for hit in self._hits(query, k)]  # fmt: skip

    def search_agentic(self, query: str, k: int = 5) -> list[dict[str, Any]]:
        """Return the best ``k`` notes with all fields; ``is_neighbor`` marks notes that the search reached by a link.

        A search always follows links and ranks linked notes by their scores.
        """
        return [
            {**_fields(hit.note), "score": hit.score, "is_neighbor": _is_linked(hit)}
            for hit in self._hits(query, k, explain=True)
        ]

    def find_related_memories(self, query: str, k: int = 5) -> tuple[str, list[int]]:
        """Return the best ``k`` notes as lines of a prompt, and the line numbers."""
        lines = [f"memory index:{n}\t{_line(hit.note)}" for n, hit in enumerate(self._hits(query, k))]
        return "".join(lines), list(range(len(lines)))

    def find_related_memories_raw(self, query: str, k: int = 5) -> str:
        """Return the best ``k`` notes as lines without numbers, each followed by up to ``k`` linked notes."""
        lines: dict[str, None] = {}
        for hit in self._hits(query, k):
            neighbours = self.memory.neighbors(hit.note.id, 1, scope=self.scope)[:k]
            notes = [hit.note, *(self._whole(neighbour.note) for neighbour in neighbours)]
            lines.update(dict.fromkeys(map(_line, notes)))
        return "".join(lines)

    def consolidate_memories(self) -> None:
        """Run all waiting jobs and evolve the notes. Raises what ``evolve`` raises."""
        self.memory.evolve(scope=self.scope)

    def _hits(self, query: str, k: int, explain: bool = False) -> list[Hit]:
        hits = self.memory.search(query, k, explain=explain, scope=self.scope)
        if self._uses is not None:
            _count(self._uses, (hit.note.id for hit in hits), datetime.now(timezone.utc))
        return [hit.model_copy(update={"note": self._whole(hit.note)}) for hit in hits]

    def _whole(self, note: Note) -> Note:
        """Return the note with the content of all its parts."""
        return note if note.parts == 1 else run_sync(self.memory, partial(whole_of, note, self.scope))

    def _parts(self, note: Note) -> list[str]:
        """Return the ids of all parts of a note."""
        if note.parts == 1:
            return [note.id]
        return [part.id for part in run_sync(self.memory, partial(parts_of, note, self.scope))]

    def _find(self, id: object, archived: bool = True) -> Note | None:
        """Return a note by zettel's id or by its own id, by default also from the archive (a full scan)."""
        if not isinstance(id, str):
            return None
        try:
            note = self.memory.get(id, scope=self.scope)
        except NotFound:
            for in_archive in (False, True) if archived else (False,):
                notes = self.memory.list(filter={_ID: id}, archived=in_archive, limit=1, scope=self.scope).notes
                if notes:
                    return self._whole(notes[0])
            return None
        return self._whole(note) if isinstance(note, Note) else None

    def _set(self, id: str, fields: dict[str, Any], present_links: Sequence[str] = ()) -> None:
        links = fields.pop("links", ())
        if fields:
            run_sync(self.memory, partial(correct, id, fields, self.scope))
        for link in dict.fromkeys(link for link in links if link not in present_links):
            target = self._find(link)
            if target is not None and target.id != id:
                self.memory.link(id, target.id, reason="linked by hand", scope=self.scope)

    def _memory_note(self, note: Note) -> MemoryNote:
        ids = self._parts(note)
        event = self.memory.get(note.event_ids[0], scope=self.scope)
        payload = None if isinstance(event, Note) else event.payload
        imported = payload.get("evolution_history") if isinstance(payload, dict) else None
        if self._uses is None:
            self._uses = {}
            for search in self.memory.searches(scope=self.scope):
                _count(self._uses, (hit.note for hit in search.hits), search.asked_at)
        uses = [self._uses[id] for id in ids if id in self._uses]
        fields = _fields(note)
        changes = self.memory.history(note.id, scope=self.scope)[1:]
        return MemoryNote(
            **fields,
            links=self._links(ids),
            retrieval_count=sum(count for count, _ in uses),
            last_accessed=max(when for _, when in uses).strftime(STAMP) if uses else fields["timestamp"],
            evolution_history=[
                *(imported if isinstance(imported, list) else []), *history_answer(changes).get("versions", ())
            ],
        )  # fmt: skip

    def _links(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of notes that a person or a model linked to these, without links by vector distance."""
        targets: dict[str, None] = {}
        for id in ids:
            present = {link.target for link in self.memory.links(id, scope=self.scope)}
            for revision in self.memory.history(id, scope=self.scope):
                if revision.live and (revision.cause == BY_HAND or revision.cause.model):
                    targets |= dict.fromkeys(link.target for link in revision.links if link.target in present)
        return list(dict.fromkeys(_id(note) for id in targets if (note := self._find(id)) is not None))


class _Memories(Mapping[str, MemoryNote]):
    """A live mapping of all notes of a system."""

    def __init__(self, system: AgenticMemorySystem) -> None:
        self._system = system

    def __getitem__(self, id: str) -> MemoryNote:
        note = self._system.read(id)
        if note is None:
            raise KeyError(id)
        return note

    def __iter__(self) -> Iterator[str]:
        cursor: str | None = None
        while True:
            page = self._system.memory.list(limit=PAGE, cursor=cursor, scope=self._system.scope)
            yield from (_id(note) for note in page.notes if note.part == 0)
            if (cursor := page.cursor) is None:
                return

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _model(backend: str, name: str, api_key: str | None) -> LiteLLM:
    if backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise InvalidInput(f"llm_backend={backend!r} is unknown: use {known}, None, or pass a Memory(llm=...)")
    return LiteLLM(BACKENDS[backend] + name, api_key=api_key)


def _embedder(name: str) -> str | None:
    return None if name.removeprefix("sentence-transformers/") == MODEL_NAME else name


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validated fields, collections as lists. Raises ``InvalidInput``."""
    if unknown := sorted(set(fields) - set(_SETTABLE)):
        raise InvalidInput(f"{', '.join(unknown)} cannot be set: use {', '.join(_SETTABLE)}")
    checked: dict[str, Any] = {}
    for name, value in fields.items():
        is_text = name in _TEXT_FIELDS
        texts = [value] if is_text else list(value) if isinstance(value, (list, tuple, set)) else [None]
        for text in texts:
            if not isinstance(text, str):
                raise InvalidInput(f"{name} must be a {'string' if is_text else 'list of strings'}")
            require_storable(name, text)
        checked[name] = value if is_text else texts
    return checked


def _count(uses: Uses, ids: Iterable[str], when: datetime) -> None:
    for id in ids:
        uses[id] = (uses.get(id, (0, when))[0] + 1, when)


def _id(note: Note) -> str:
    """Return the caller's id of a note, or else zettel's id."""
    return str(note.metadata.get(_ID, note.id))


def _fields(note: Note) -> dict[str, Any]:
    return {
        "id": _id(note), "content": note.content, "context": note.context, "keywords": list(note.keywords),
        "tags": list(note.tags), "category": str(note.metadata.get("category", UNSORTED)),
        "timestamp": str(note.metadata.get(_TIMESTAMP, (note.occurred_at or note.recorded_at).strftime(STAMP))),
    }  # fmt: skip


def _line(note: Note) -> str:
    return (
        f"talk start time:{_fields(note)['timestamp']}\tmemory content: {note.content}\tmemory context: {note.context}"
        f"\tmemory keywords: {list(note.keywords)}\tmemory tags: {list(note.tags)}\n"
    )


def _is_linked(hit: Hit) -> bool:
    last = hit.why.path[-1].over if hit.why.path else ""
    return last.removeprefix(REVERSED) in LinkType.__members__
