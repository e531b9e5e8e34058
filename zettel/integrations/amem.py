"""A-MEM's interface, for programs that were written for it: change the import, keep the rest.

What A-MEM's own documentation promises of each method holds here, also where its code does otherwise: what is added
stays when the program ends, a new system does not wipe an older one, links lead to notes by their id and are followed,
changed notes are found by what they say now, and what goes wrong is an error and not an empty list.

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

from zettel.arguments import require_storable
from zettel.errors import IdentityConflict, InvalidInput, NotFound, WasDeleted
from zettel.integrations.either import wait
from zettel.integrations.tool_answers import changes
from zettel.integrations.wholes import correct, parts_of, whole_of
from zettel.llm.lite import LiteLLM
from zettel.memory import Memory
from zettel.model import Hit, LinkType, Note, Scope
from zettel.revise import BY_HAND
from zettel.search.explain import REVERSED
from zettel.transcripts.amem import time_of

MODEL_NAME = "all-MiniLM-L6-v2"
"""The embedding model that A-MEM takes unless told otherwise; zettel ships a small one that was distilled from it."""
DEFAULTS = (MODEL_NAME, "openai", "gpt-4o-mini", None, "zettel.db")
"""What stands for itself where nothing is said: model_name, llm_backend, llm_model, api_key and url."""
BACKENDS = {"openai": "openai/", "ollama": "ollama_chat/", "openrouter": "openrouter/"}
"""What LiteLLM calls the backends of A-MEM."""
STAMP = "%Y%m%d%H%M"
"""How A-MEM writes times."""
Uses = dict[str, tuple[int, datetime]]
"""By note: how many searches found it, and when the last did."""
UNSORTED = "Uncategorized"
"""The category of a note that was given none."""
PAGE = 200
"""Notes read at once where all are."""

_TEXT = ("content", "context", "category")  # the category is metadata, the others are of every note
_LISTS = ("keywords", "tags")
_SETTABLE = (*_TEXT, *_LISTS, "links")
_ID = "id"  # in metadata, that which a caller gave
_TOLD = "timestamp"  # in metadata, a time as it was told, where it was told otherwise


@dataclass
class MemoryNote:
    """A note as A-MEM has them. It is a copy: change what is stored by ``AgenticMemorySystem.update``.

    ``links`` are the ids of notes that a person, an agent or a language model linked this one to. ``timestamp`` is as
    it was told, or when it happened (UTC). ``retrieval_count`` counts the searches that found it, as far as the log of
    searches goes back when the system first reads it, and of later ones those of this system; ``last_accessed`` tells
    the last of them. ``evolution_history`` has what was handed in under this name, and then a dict for each of the last
    changes: its version, when, by whom, why, and what it set.
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
    """A memory by the methods of A-MEM's class of that name.

    ``memory`` is a ``Memory``; without one it is made of A-MEM's own arguments, in the file ``url`` (":memory:": gone
    when the program ends). ``model_name`` is an embedding model: A-MEM's default stands for the one that zettel ships.
    ``llm_backend`` (openai, ollama, openrouter; None: no model), ``llm_model`` and ``api_key`` are the language model
    that writes the notes. After every ``evo_threshold`` notes all of them learn from each other (``Memory.evolve``), in
    the background as all work of models is: ``consolidate_memories`` does it now. Counted are all that the scope held
    when this system first adds one, and then its own. ``scope`` is whose memory it is. Raises ``InvalidInput``, and
    what ``Memory`` raises.
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
            raise InvalidInput(f"evo_threshold={evo_threshold!r} is not a number of notes: use 1 or more")
        if isinstance(memory, str):  # A-MEM's own first argument
            model_name = memory
        if memory is None or isinstance(memory, str):
            llm = None if llm_backend is None else _model(llm_backend, llm_model, api_key)
            self.memory = Memory(url, llm=llm, embedder=_embedder(model_name), scope=scope)
        elif not isinstance(memory, Memory):
            raise InvalidInput(f"{type(memory).__name__} cannot be used here: hand in a Memory")
        elif (model_name, llm_backend, llm_model, api_key, url) != DEFAULTS:
            raise InvalidInput("the memory that is handed in has its own models and its own file: name them there")
        else:
            self.memory = memory
        self.scope = scope or self.memory.scope
        self.evo_threshold = evo_threshold
        self._count_of_notes: int | None = None  # as added, long ones once; asked for with the first that is added
        self._uses: Uses | None = None  # from the log, when first asked for

    @property
    def memories(self) -> Mapping[str, MemoryNote]:
        """All notes by their ids, in the order in which they were added, as they are whenever it is looked into."""
        return _Memories(self)

    def add_note(self, content: str, time: str | None = None, **fields: Any) -> str:
        """Remember something that happened at that ``time``, by default now; its id.

        ``time`` (or ``timestamp``) is 202405011830 or ISO 8601; what is no time is kept as it was told, and the note
        has no date. ``keywords``, ``tags``, ``context``, ``category``, ``links`` (ids; unknown ones are left out),
        ``id`` and ``evolution_history`` are stored as they are given. What is not given is written from the content,
        and by the language model. It is found from now on. What was deleted can be added again. Raises
        ``InvalidInput``, and what ``Memory.add`` raises.
        """
        told = fields.pop("timestamp", None) if time is None else time
        history = fields.pop("evolution_history", None)
        own = None if fields.get(_ID) is None else str(fields[_ID])
        fields.pop(_ID, None)
        for name in ("retrieval_count", "last_accessed"):  # by another system: here they are counted
            fields.pop(name, None)
        given = _checked({name: value for name, value in fields.items() if value is not None})
        taken = InvalidInput(f"there is a note {own!r} already: change it with update, or give another id")
        if own is not None and self._find(own, away=False) is not None:
            raise taken
        when = datetime.now(timezone.utc) if told is None else time_of(told)
        about = {_ID: own, "category": given.pop("category", None)}
        if told is not None and (when is None or when.strftime(STAMP) != told):
            about[_TOLD] = told
        event: dict[str, Any] = {
            "content": content,
            "occurred_at": when,
            "metadata": {name: str(value) for name, value in about.items() if value is not None},
            "payload": {"evolution_history": history} if history else None,
        }
        try:
            id = self.memory.add(**event, id=own, scope=self.scope)
        except IdentityConflict:  # it is in the archive
            raise taken from None
        except WasDeleted:  # here that is no reason; the id that was given stands in the metadata
            if own is not None and self._find(own) is not None:
                raise taken from None
            id = self.memory.add(**event, id=f"{own or ''}#{secrets.token_hex(8)}", scope=self.scope)
        self._set(id, given)
        before = self._count_of_notes
        self._count_of_notes = self.memory.stats(scope=self.scope)["events"] if before is None else before + 1
        if self._count_of_notes % self.evo_threshold == 0:
            self.memory.evolve_later(scope=self.scope)
        return own or id

    def read(self, memory_id: str) -> MemoryNote | None:
        """The note of that id, None if there is none."""
        note = self._find(memory_id)
        return None if note is None else self._told(note)

    def update(self, memory_id: str, **fields: Any) -> bool:
        """Set ``content``, ``keywords``, ``tags``, ``context``, ``category`` or ``links``; False if there is no such
        note.

        ``links`` may add to those that it has. The former version is kept (``Memory.history``, ``Memory.revert``).
        Raises ``InvalidInput``, also for other fields and where a link would have to be taken away.
        """
        note = self._find(memory_id)
        if note is None:
            return False
        given = _checked(fields)
        has = self._links(self._parts(note)) if "links" in given else []
        if gone := sorted(set(has) - set(given.get("links", has))):
            raise InvalidInput(f"links to {', '.join(gone)} would be lost: to take one back there is Memory.revert")
        if "category" in given:
            given["metadata"] = note.metadata | {"category": given.pop("category")}
        self._set(note.id, given, has)
        return True

    def delete(self, memory_id: str) -> bool:
        """Destroy a note for good, with all that was made of it; False if there is none."""
        note = self._find(memory_id)
        if note is None:
            return False
        self.memory.delete(note.id, scope=self.scope)
        return True

    def search(self, query: str, k: int = 5) -> list[dict[str, Any]]:
        """The notes that answer best, at most ``k``: ``id``, ``content``, ``context``, ``keywords`` and ``score``.

        ``score`` is how surely it is an answer, from 0 to 1: more is better, where A-MEM's code gives a distance.
        """
        return [
            {"id": _name(hit.note), "content": hit.note.content, "context": hit.note.context,
             "keywords": list(hit.note.keywords), "score": hit.score}
            for hit in self._hits(query, k)
        ]  # fmt: skip

    def search_agentic(self, query: str, k: int = 5) -> list[dict[str, Any]]:
        """The same with all fields, and whether a note came in because others link to it (``is_neighbor``).

        Links are always followed, and a note that they lead to stands where its score puts it; none is left out because
        there are ``k`` that match by themselves.
        """
        return [
            {**_fields(hit.note), "score": hit.score, "is_neighbor": _over_a_link(hit)}
            for hit in self._hits(query, k, explain=True)
        ]

    def find_related_memories(self, query: str, k: int = 5) -> tuple[str, list[int]]:
        """What ``search`` finds as text for a prompt, a line for each, and the numbers that stand in these lines."""
        lines = [f"memory index:{n}\t{_line(hit.note)}" for n, hit in enumerate(self._hits(query, k))]
        return "".join(lines), list(range(len(lines)))

    def find_related_memories_raw(self, query: str, k: int = 5) -> str:
        """The same without numbers, each line followed by those of up to ``k`` notes that it is linked with."""
        lines: dict[str, None] = {}
        for hit in self._hits(query, k):
            linked = self.memory.neighbors(hit.note.id, 1, scope=self.scope)[:k]
            lines.update(dict.fromkeys(map(_line, [hit.note, *(self._whole(one.note) for one in linked)])))
        return "".join(lines)

    def consolidate_memories(self) -> None:
        """Do all that waits to be done, and have all notes learn from each other. Raises what ``evolve`` raises."""
        self.memory.evolve(scope=self.scope)

    # ------------------------------------------------------------------------------------------------------- inside

    def _hits(self, query: str, k: int, explain: bool = False) -> list[Hit]:
        hits = self.memory.search(query, k, explain=explain, scope=self.scope)
        if self._uses is not None:
            self._count(self._uses, (hit.note.id for hit in hits), datetime.now(timezone.utc))
        return [hit.model_copy(update={"note": self._whole(hit.note)}) for hit in hits]

    def _whole(self, note: Note) -> Note:
        """A long note, of which this may be a part."""
        return note if note.parts == 1 else wait(self.memory, partial(whole_of, note, self.scope))

    def _parts(self, note: Note) -> list[str]:
        """The ids of a long note's parts."""
        if note.parts == 1:
            return [note.id]
        return [part.id for part in wait(self.memory, partial(parts_of, note, self.scope))]

    def _find(self, id: object, away: bool = True) -> Note | None:
        """A note by zettel's id, or by that which it was added with; unless told otherwise in the archive too, all of
        which is read for that."""
        if not isinstance(id, str):
            return None
        try:
            note = self.memory.get(id, scope=self.scope)
        except NotFound:
            for archived in (False, True) if away else (False,):
                notes = self.memory.list(filter={_ID: id}, archived=archived, limit=1, scope=self.scope).notes
                if notes:
                    return self._whole(notes[0])
            return None
        return self._whole(note) if isinstance(note, Note) else None

    def _set(self, id: str, fields: dict[str, Any], linked: Sequence[str] = ()) -> None:
        links = fields.pop("links", ())
        if fields:
            wait(self.memory, partial(correct, id, fields, self.scope))
        for link in dict.fromkeys(link for link in links if link not in linked):
            other = self._find(link)
            if other is not None and other.id != id:
                self.memory.link(id, other.id, reason="linked by hand", scope=self.scope)

    def _told(self, note: Note) -> MemoryNote:
        ids = self._parts(note)
        event = self.memory.get(note.event_ids[0], scope=self.scope)
        payload = None if isinstance(event, Note) else event.payload
        before = payload.get("evolution_history") if isinstance(payload, dict) else None
        if self._uses is None:
            self._uses = {}
            for search in self.memory.searches(scope=self.scope):
                self._count(self._uses, (hit.note for hit in search.hits), search.asked_at)
        uses = [self._uses[id] for id in ids if id in self._uses]
        last = max((when for _, when in uses), default=None)
        fields = _fields(note)
        history = before if isinstance(before, list) else []
        changed = self.memory.history(note.id, scope=self.scope)
        return MemoryNote(
            **fields,
            links=self._links(ids),
            retrieval_count=sum(count for count, _ in uses),
            last_accessed=fields["timestamp"] if last is None else last.strftime(STAMP),
            evolution_history=[*history, *changes(changed[1:]).get("versions", ())],
        )

    def _links(self, ids: Iterable[str]) -> list[str]:
        """The notes that somebody linked these to, in that order; near ones, that a measure linked, are not told."""
        targets: dict[str, None] = {}
        for id in ids:
            there = {link.target for link in self.memory.links(id, scope=self.scope)}
            for one in self.memory.history(id, scope=self.scope):
                if one.live and (one.cause == BY_HAND or one.cause.model):
                    targets |= dict.fromkeys(link.target for link in one.links if link.target in there)
        return list(dict.fromkeys(_name(other) for id in targets if (other := self._find(id)) is not None))

    @staticmethod
    def _count(uses: Uses, ids: Iterable[str], when: datetime) -> None:
        for id in ids:
            uses[id] = (uses.get(id, (0, when))[0] + 1, when)


class _Memories(Mapping[str, MemoryNote]):
    """All notes of a system, read when they are asked for."""

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
            yield from (_name(note) for note in page.notes if note.part == 0)
            if (cursor := page.cursor) is None:
                return

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _model(backend: str, name: str, api_key: str | None) -> LiteLLM:
    if backend not in BACKENDS:
        raise InvalidInput(
            f"llm_backend={backend!r} is not known here: use {', '.join(BACKENDS)}, None, or hand in Memory(llm=...)"
        )
    return LiteLLM(BACKENDS[backend] + name, api_key=api_key)


def _embedder(name: str) -> str | None:
    return None if name.removeprefix("sentence-transformers/") == MODEL_NAME else name


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be set, before anything is. Raises ``InvalidInput``."""
    if unknown := sorted(set(fields) - set(_SETTABLE)):
        raise InvalidInput(f"{', '.join(unknown)} cannot be set: of a note these can, {', '.join(_SETTABLE)}")
    for name, value in fields.items():
        texts = [value] if name in _TEXT else list(value) if isinstance(value, (list, tuple, set)) else [None]
        for text in texts:
            if not isinstance(text, str):
                wanted = "a text" if name in _TEXT else "a list of texts"
                raise InvalidInput(f"{name}={value!r} is not {wanted}")
            require_storable(name, text)
    return {name: value if name in _TEXT else list(value) for name, value in fields.items()}


def _name(note: Note) -> str:
    """The id that the note was added with, or its own."""
    return str(note.metadata.get(_ID, note.id))


def _fields(note: Note) -> dict[str, Any]:
    return {
        "id": _name(note), "content": note.content, "context": note.context, "keywords": list(note.keywords),
        "tags": list(note.tags), "category": str(note.metadata.get("category", UNSORTED)),
        "timestamp": str(note.metadata.get(_TOLD, (note.occurred_at or note.recorded_at).strftime(STAMP))),
    }  # fmt: skip


def _line(note: Note) -> str:
    return (
        f"talk start time:{_fields(note)['timestamp']}\tmemory content: {note.content}\tmemory context: {note.context}"
        f"\tmemory keywords: {list(note.keywords)}\tmemory tags: {list(note.tags)}\n"
    )


def _over_a_link(hit: Hit) -> bool:
    last = hit.why.path[-1].over if hit.why.path else ""
    return last.removeprefix(REVERSED) in LinkType.__members__
