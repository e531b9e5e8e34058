"""``AsyncMemory``: the public API for code that runs in an event loop. ``Memory`` has the same methods without one."""

# mypy: disable-error-code="no-any-return"
# A backend answers every operation through one method, ``Backend.call``: its result types are those written here.

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from zettel.core.arguments import Time, checked, head_of, list_of, require_one, require_scope, scopes_of
from zettel.core.labels import note_labels
from zettel.core.messages import event_of_message
from zettel.errors import InvalidInput, MemoryClosed
from zettel.model import (
    Conflict,
    Event,
    EventRecord,
    Evolved,
    Example,
    Graph,
    Hit,
    Job,
    Kind,
    Link,
    LinkType,
    LoggedSearch,
    Neighbor,
    Note,
    OnConflict,
    Outcome,
    Page,
    Queried,
    QueryResult,
    Remembered,
    Revision,
    Role,
    Scope,
    Term,
    Tuned,
    Usage,
)
from zettel.model.hits import DEFAULT_TOKENS
from zettel.ports import Annotator, Embedder, GraphStore
from zettel.ports.backend import Backend

if TYPE_CHECKING:
    from zettel.evolve.decay import Decay
    from zettel.exports.report import ExportReport
    from zettel.llm.budget import Budget
    from zettel.local.runners import RunnerSpec
    from zettel.model import Estimate
    from zettel.ports.language_model import LLM, ModelAnnotator
    from zettel.ports.settings import Privacy
    from zettel.scoring import ScorerSpec
    from zettel.search.gather import Gathered
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport, OnRejected
    from zettel.transcripts.scopes import ScopeBy

List: TypeAlias = list
"""The builtin, inside a class that has a method of that name."""


class AsyncMemory:
    """A memory for code that runs in an event loop. ``Memory`` has the same methods for all other code.

    ``url`` is a file (created if it is missing), a Neo4j address such as ``neo4j://localhost:7687``, a zettel server
    such as ``https://memory.example``, or a GraphStore. ``key`` is the access key of a zettel server, or encrypts
    the file (extra ``encryption``), by default with ZETTEL_STORE_KEY from the environment.
    ``auth`` is (user, password) for Neo4j, by default NEO4J_USERNAME and NEO4J_PASSWORD from the environment;
    ``database`` names its database, by default NEO4J_DATABASE or ``neo4j``.

    ``llm`` names a language model that writes notes and decides links in background jobs: a LiteLLM name such as
    ``openai/gpt-4o-mini``, a sequence of names to fall back on, or a ``LiteLLM``. ``budget`` limits its cost.
    ``run_llm_jobs=False`` leaves the model's jobs to another process. ``annotator`` replaces the part that writes the
    fields of notes. ``decay`` makes ``evolve`` archive decayed notes; without it none decays.

    ``embedder`` is a name for ``zettel.embed.load_embedder``, a folder or an Embedder; None selects the shipped one
    that the store records, else the default. ``scorer`` ranks search results: a name, a Scorer or a Reranker, see
    ``zettel.scoring.load_scorer``. ``scope`` applies to every call that names no scope;
    searches read the scopes of ``reads`` too. ``runner`` runs the jobs: in
    this process by default, ``"process"`` in a child process, ``"ray"`` on a Ray cluster, see
    ``zettel.local.runners.load_runner``.

    ``privacy`` decides what happens to texts with secrets, such as API keys, passwords and card numbers: ``"report"``
    (default) stores and reports them, ``"redact"`` replaces them by marks such as ``[redacted GitHub token]``,
    ``"block"`` raises ``SecretRefused``, and ``"off"`` does not look for them. Without it, ZETTEL_PRIVACY decides.

    ``async with`` or the first call opens the memory.
    """

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        llm: LLM | None = None,
        annotator: Annotator | ModelAnnotator | None = None,
        budget: Budget | None = None,
        run_llm_jobs: bool = True,
        decay: Decay | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: ScorerSpec = None,
        scope: Scope | None = None,
        reads: Iterable[Scope] = (),
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        runner: RunnerSpec = None,
        key: str | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        require_scope(scope)
        self.scope = scope or Scope()
        self.reads = tuple(scopes_of([self.scope, *list_of("reads", reads, "scopes")])[1:])
        local: dict[str, Any] = {
            "llm": llm, "annotator": annotator, "budget": budget, "decay": decay, "embedder": embedder,
            "scorer": scorer, "auth": auth, "database": database, "runner": runner, "privacy": privacy,
        }  # fmt: skip
        self._backend: Backend
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            from zettel.remote.backend import RemoteBackend

            for name, value in local.items():
                if value is not None:
                    raise InvalidInput(f"{name}= is an option of the server: start the server at {url} with it")
            self._backend = RemoteBackend(url, key, scope)
        else:
            from zettel.local.backend import LocalBackend

            if isinstance(key, str) and key.startswith("zk_"):  # nobody means to encrypt a file with it
                raise InvalidInput("this key= is for a zettel server, https://HOST:PORT: open a store without it")
            if key is not None and not isinstance(url, (str, Path)):
                raise InvalidInput("key= is for a file or a zettel server: open this store without it")
            self._backend = LocalBackend(url, self.scope, run_llm_jobs=run_llm_jobs, store_key=key, **local)
        self._pid = os.getpid()
        self._closed = False
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------------------------------------- open and close

    async def open(self) -> AsyncMemory:
        """Open the store and start its jobs, or connect to the server. Raises what the store's ``open`` raises."""
        async with self._opening:
            self._require_usable()
            if self._loop is None:
                await self._backend.open()
                self._loop = asyncio.get_running_loop()
        return self

    async def close(self) -> None:
        """Stop the work and close the store. Unfinished jobs stay in it for the next process that opens it."""
        if not self._closed:
            self._closed = True
            await self._backend.close()

    async def __aenter__(self) -> AsyncMemory:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _require_usable(self) -> None:
        if self._pid != os.getpid():
            raise MemoryClosed("this memory was opened before a fork: open another one in this process")
        if self._closed:
            raise MemoryClosed("this memory was closed: open another one")
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise MemoryClosed("this memory was opened in another event loop: open one in this loop, or use Memory")

    async def _ready(self, scope: Scope | None) -> Backend:
        """Return the open backend. Raises ``MemoryClosed``, ``InvalidInput``."""
        self._require_usable()
        require_scope(scope)
        if self._loop is None:
            await self.open()
        return self._backend

    def _read_scopes(self, scopes: Iterable[Scope] | None, scope: Scope | None) -> Iterable[Scope] | None:
        """Return the scopes that a search reads; None for one."""
        return [self.scope, *self.reads] if scopes is None and scope is None and self.reads else scopes

    def _search_in(self, search: dict[str, Any], scope: Scope | None) -> dict[str, Any]:
        """Return the arguments of a search, with the scopes that it reads."""
        scopes = self._read_scopes(search.get("scopes"), scope)
        return search if scopes is None else search | {"scopes": list_of("scopes", scopes, "scopes")}

    async def _call(self, operation: str, scope: Scope | None, /, **arguments: Any) -> Any:
        return await (await self._ready(scope)).call(operation, arguments, scope)

    # ------------------------------------------------------------------------------------------------------------- add

    async def add(
        self,
        content: str = "",
        *,
        id: str | None = None,
        title: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        occurred_at: Time | None = None,
        session: str | None = None,
        source: Any = None,
        payload: Any = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        importance: float | None = None,
        pinned: bool = False,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> str:
        """Add one event and return the id of its (head) note. When it returns, the event is durable and searchable.

        ``tags`` are added to those of the note; ``importance`` (0 to 1) decides near-ties and decay; a ``pinned`` note
        belongs in every prompt (``core``) and never decays. They are set right after the event is stored; of a text in
        several parts, in the first.

        ``wait`` also runs all pending jobs of the scope. Raises ``InvalidEvent``, ``IdentityConflict``,
        ``EventDeleted``; with ``wait`` also ``JobFailed``. After ``JobFailed`` the event is stored: call
        ``retry_jobs`` and do not add it again.
        """
        fields: dict[str, Any] = {
            "content": content, "id": id, "title": title, "speaker": speaker, "role": role,
            "occurred_at": occurred_at,
            "session": session, "source": source, "payload": payload, "metadata": {} if metadata is None else metadata,
        }  # fmt: skip
        labels = note_labels(tags, importance, pinned)
        (added,) = await self.add_many([fields], on_conflict=on_conflict, wait=wait and not labels, scope=scope)
        if labels:
            note = await self.get(added, scope=scope)
            assert isinstance(note, Note)
            if changes := labels.changes(note):
                await self.update(added, **changes, scope=scope)
            if wait:
                await self.flush(scope=scope or self.scope)
        return added

    async def add_messages(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        session: str | None = None,
        occurred_at: Time | None = None,
        metadata: Mapping[str, Any] | None = None,
        wait: bool = False,
        scope: Scope | None = None,
    ) -> List[str]:
        """Add messages of a chat API, one event each, in one transaction; return the ids of their head notes.

        A message is ``{"role": "user", "content": "…"}`` with an optional ``name``, ``id`` and ``occurred_at``; content
        may be a list of parts. Other fields, such as tool calls, become the event's payload. ``session``,
        ``occurred_at`` and ``metadata`` apply to all. Raises ``InvalidInput``, and the errors of ``add_many``.

        Example: ``memory.add_messages([{"role": "user", "content": "I moved to Oslo."}], session="s1")``.
        """
        common = {"session": session, "occurred_at": occurred_at, "metadata": {} if metadata is None else metadata}
        given = list_of("messages", messages, "messages")
        events = [common | event_of_message(place, message) for place, message in enumerate(given)]
        return await self.add_many(events, wait=wait, scope=scope)

    async def add_many(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> List[str]:
        """Add events in one transaction and return the ids of their head notes, in order.

        An event that was deleted from this scope before is not stored again: ``EventDeleted`` names it after the
        others were stored. ``add_many_report`` reports it instead. ``InvalidEvent`` and ``IdentityConflict`` are raised
        before anything is stored; with ``wait``, ``JobFailed`` after it.
        """
        accepted = [checked(event) for event in list_of("events", events, "events")]
        outcomes = await self.add_many_report(accepted, on_conflict=on_conflict, scope=scope)
        if wait:
            await self.flush(scope=scope or self.scope)
        return [head_of(event, outcome) for event, outcome in zip(accepted, outcomes, strict=True)]

    async def add_many_report(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        scope: Scope | None = None,
    ) -> List[Remembered]:
        """Add events in one transaction and report the note id and status of each, in order.

        The status is ``added``, ``existing``, ``revised``, ``skipped`` or ``deleted``. Raises ``InvalidEvent``,
        ``IdentityConflict``.
        """
        accepted = [checked(event) for event in list_of("events", events, "events")]
        return await self._call("add_many_report", scope, events=accepted, on_conflict=on_conflict)

    async def add_fact(
        self,
        subject: str,
        attribute: str,
        value: str,
        *,
        valid_from: Time | None = None,
        valid_to: Time | None = None,
        id: str | None = None,
        session: str | None = None,
        sources: Iterable[str] = (),
        scope: Scope | None = None,
    ) -> str:
        """Add a fact that the caller extracted, and return the id of its semantic note.

        It supersedes earlier values of the same ``subject`` and ``attribute`` (case does not matter), or contradicts
        those of more trust; the next later value supersedes it. ``sources`` are the notes that it was
        extracted from: it is linked to them, has at most their trust, and is deleted with them. ``id`` is the caller's
        own; a fact with an id or a time is stored once. ``revert(id, 1)`` undoes all effects. Raises ``InvalidInput``,
        ``InvalidEvent``, ``IdentityConflict``, ``EventDeleted``, ``NotFound`` for an unknown source.

        Example: ``memory.add_fact("Ann", "home", "Bergen", valid_from="2024-05-01")``.
        """
        return await self._call(
            "add_fact", scope, subject=subject, attribute=attribute, value=value, valid_from=valid_from,
            valid_to=valid_to, id=id, session=session, sources=sources,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------------------- search

    async def search(
        self,
        question: str,
        k: int = 10,
        *,
        as_of: Time | None = None,
        known_at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        now: Time | None = None,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        min_trust: float | None = None,
        current_only: bool = False,
        archived: bool = False,
        quarantined: bool = False,
        scorer: ScorerSpec = None,
        explain: bool = False,
        log: bool = True,
        restore_decayed: bool = True,
        scopes: Iterable[Scope] | None = None,
        scope: Scope | None = None,
    ) -> List[Hit]:
        """Return the notes that answer a question, best first, each with a calibrated score and an explanation.

        All filters apply before ranking:
        ``as_of`` selects by valid time and ``known_at`` by transaction time. ``since`` (inclusive) and ``until``
        (exclusive) bound ``occurred_at``. ``now`` is the reference date for words such as "yesterday", in its time
        zone. ``filter`` matches metadata values. ``current_only`` leaves out outdated notes. ``archived`` and
        ``quarantined`` include those notes; such a search reads page by page and takes longer. ``min_trust`` (0 to 1)
        leaves out notes of less trust. Otherwise notes that a doubtful writer wrote, or that look like instructions,
        rank after notes of full trust that fit the question, and ``why.trust`` marks them.

        A decayed note that alone contains a rare word of the question is found too and is restored for good, unless
        ``restore_decayed`` is False. ``scorer`` selects the ranking, see ``zettel.scoring.load_scorer``.
        ``explain`` adds the path and all features. ``log`` gives the hits a ``search_id`` for ``feedback`` and stores
        the question and the ids of its hits, in the background, until one of these notes is deleted.

        ``scopes`` searches several scopes, by default those that the memory was opened with (``scope`` and ``reads``):
        one ranking by score, in which each hit has its ``scope``. Statistics and logs stay those of each scope.

        Raises ``InvalidQuestion``, ``InvalidInput``, ``ScorerError``, ``MissingExtra``.
        """
        (hits,) = await self.search_many(
            [question], k, as_of=as_of, known_at=known_at, since=since, until=until, now=now, kinds=kinds, tags=tags,
            session=session, speaker=speaker, role=role, filter=filter, min_score=min_score, min_trust=min_trust,
            current_only=current_only, archived=archived, quarantined=quarantined, scorer=scorer,
            explain=explain, log=log,
            restore_decayed=restore_decayed, scopes=scopes, scope=scope,
        )  # fmt: skip
        return hits

    async def search_many(
        self,
        questions: Iterable[str],
        k: int = 10,
        *,
        as_of: Time | None = None,
        known_at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        now: Time | None = None,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        min_trust: float | None = None,
        current_only: bool = False,
        archived: bool = False,
        quarantined: bool = False,
        scorer: ScorerSpec = None,
        explain: bool = False,
        log: bool = True,
        restore_decayed: bool = True,
        scopes: Iterable[Scope] | None = None,
        scope: Scope | None = None,
    ) -> List[List[Hit]]:
        """Return the hits of each question, in order: the results of ``search``, faster than one by one."""
        return await self._call(
            "search_many", scope, questions=questions, k=k, as_of=as_of, known_at=known_at, since=since, until=until,
            now=now, kinds=kinds, tags=tags, session=session, speaker=speaker, role=role, filter=filter,
            min_score=min_score, min_trust=min_trust, current_only=current_only, archived=archived,
            quarantined=quarantined, scorer=scorer, explain=explain, log=log,
            restore_decayed=restore_decayed, scopes=self._read_scopes(scopes, scope),
        )  # fmt: skip

    async def context(
        self,
        /,
        question: str,
        max_tokens: int = DEFAULT_TOKENS,
        *,
        profile: bool = False,
        omit_flagged: bool = False,
        scope: Scope | None = None,
        **search: Any,
    ) -> str:
        """Pack the hits of ``search`` for a prompt, within ``max_tokens``: facts, then messages by day, with speakers.

        Repeated statements and facts whose messages are packed appear once. Outdated notes are left out unless the
        question is about the past, or ``as_of`` or ``current_only=False`` is set. A long hit that does not fit is
        replaced by its passage. A line "> Ann asked: …" precedes an answer if it fits and the text does not contain the
        question itself.

        Notes of writers without full trust and notes that look like instructions come last, quoted under "From
        untrusted sources"; so do texts of tools and documents if the text also contains messages of people.
        ``omit_flagged`` leaves out notes that look like instructions.

        ``profile`` puts the profile of the speakers, which ``evolve`` derives, first. The profile describes the
        present, so it is left out with ``as_of`` or ``known_at``. ``search`` are arguments of ``search``.
        """
        return await self._call(
            "context", scope, question=question, max_tokens=max_tokens, profile=profile, omit_flagged=omit_flagged,
            search=self._search_in(search, scope),
        )  # fmt: skip

    async def answer_context(
        self,
        /,
        question: str,
        rounds: int = 3,
        *,
        max_tokens: int = DEFAULT_TOKENS,
        scope: Scope | None = None,
        **search: Any,
    ) -> Gathered:
        """Collect evidence for a question over several searches, and pack it for a prompt.

        After each of at most ``rounds`` searches the memory's language model names missing facts, and zettel searches
        for these. Without a model, or when it fails or its budget is spent, the result contains the evidence so far;
        ``ended`` states the reason. ``search`` are arguments of ``search``. Raises what ``context`` raises.
        """
        return await self._call(
            "answer_context", scope, question=question, rounds=rounds, max_tokens=max_tokens,
            search=self._search_in(search, scope),
        )

    async def session_context(
        self, session: str, max_tokens: int = DEFAULT_TOKENS, *, scope: Scope | None = None
    ) -> str:
        """Return the short-term memory of a session for a prompt: its last turns verbatim, after a summary.

        If the whole session does not fit into ``max_tokens``, sentences of the turns before the last ones precede them,
        above all statements of people about themselves. No model is called. Archived, quarantined and deleted turns are
        left out, and the summary quotes no tools, untrusted writers or texts that look like instructions. It covers the
        last 500 turns. Returns "" for an unknown session. Raises ``InvalidInput``.
        """
        return await self._call("session_context", scope, session=session, max_tokens=max_tokens)

    async def examples(self, task: str, k: int = 3, *, scope: Scope | None = None) -> List[Example]:
        """Return up to ``k`` past episodes in which an agent succeeded at a similar task, the most similar first.

        An episode is a message of a user with the turns after it up to the next task, at most one of each session. It
        succeeded if the last outcome in it is a success: of a tool (metadata ``outcome``, which imported traces have),
        or in a message ("That worked!"). ``str(example)`` is text for a prompt. Raises ``InvalidQuestion``,
        ``InvalidInput``.
        """
        return await self._call("examples", scope, task=task, k=k)

    # ---------------------------------------------------------------------------------------------------- read by id

    async def get(self, id: str, *, scope: Scope | None = None) -> Note | EventRecord:
        """Return a note (``n_…``) or an event (``e_…``) by its id. Raises ``NotFound``."""
        return await self._call("get", scope, id=id)

    async def list(
        self,
        *,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        archived: bool = False,
        limit: int = 100,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Page:
        """Return a page of notes in the order of arrival. Pass the page's ``cursor`` to get the next page.

        ``archived`` lists archived, merged and quarantined notes instead, newest first.
        """
        return await self._call(
            "list", scope, kinds=kinds, tags=tags, session=session, speaker=speaker, role=role, since=since,
            until=until, filter=filter,
            archived=archived, limit=limit, cursor=cursor,
        )  # fmt: skip

    async def query(
        self,
        of: Queried = "notes",
        *,
        words: Iterable[str] | None = None,
        terms: Iterable[str] | None = None,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        as_of: Time | None = None,
        archived: bool = False,
        group_by: Iterable[str] | None = None,
        tz: str | None = None,
        order: str | None = None,
        limit: int = 100,
        scope: Scope | None = None,
    ) -> QueryResult:
        """Count, group and list notes or events that meet all conditions, exactly and without ranking.

        ``of`` is ``notes`` or ``events``. An event counts if one of its episodic notes meets the conditions; ``since``,
        ``until`` and ``session`` then apply to the event, so each mention of a merged statement counts. ``words``
        are words in the note's text, in any form ("run" matches "running"), and ``terms`` are names and tags, as
        ``terms()`` returns them; one of each must match. An entry of several words requires all of them. The other
        conditions are those of ``list``. ``as_of`` selects notes that were valid at that time. ``archived``
        includes the archive, except merged and quarantined notes; such a query reads every note.

        ``group_by`` names up to several of kind, speaker, role, session, tag or term, year, month, week, day, weekday;
        days are those of the time zone ``tz`` (default UTC). ``order`` of groups is ``count``, ``key``, ``first`` or
        ``last``, and otherwise ``time`` or ``arrival`` of the notes; "-" before it reverses it. ``limit`` (0 or more)
        is the number of returned groups, notes or events. Raises ``InvalidInput``.

        Example: ``memory.query("events", words=["run"], role="user", limit=0).count``.
        """
        return await self._call(
            "query", scope, of=of, words=words, terms=terms, kinds=kinds, tags=tags, session=session, speaker=speaker,
            role=role, since=since, until=until, filter=filter, as_of=as_of, archived=archived, group_by=group_by,
            tz=tz, order=order, limit=limit,
        )  # fmt: skip

    async def events(
        self, session: str, *, source: str | None = None, limit: int | None = None, scope: Scope | None = None
    ) -> List[EventRecord]:
        """Return the events of a session, verbatim and in the order of arrival; with ``limit`` only the last ones.

        Events of merged, archived and quarantined notes are included. ``source`` selects the events of one file.
        """
        return await self._call("events", scope, session=session, source=source, limit=limit)

    async def links(self, id: str, *, scope: Scope | None = None) -> List[Link]:
        """Return the links that start or end at a note. Raises ``NotFound``."""
        return await self._call("links", scope, id=id)

    async def neighbors(self, id: str, hops: int = 2, *, scope: Scope | None = None) -> List[Neighbor]:
        """Return the notes within ``hops`` links of a note, nearest first. Raises ``NotFound``."""
        return await self._call("neighbors", scope, id=id, hops=hops)

    async def graph(
        self,
        around: str | None = None,
        hops: int = 2,
        *,
        limit: int = 2000,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Graph:
        """Return notes and the links between them.

        With ``around``, the notes within ``hops`` links of that note, nearest first. Otherwise a page of at most
        ``limit`` notes in the order of arrival. Raises ``NotFound``.
        """
        return await self._call("graph", scope, around=around, hops=hops, limit=limit, cursor=cursor)

    async def conflicts(self, *, scope: Scope | None = None) -> List[Conflict]:
        """Return pairs of notes that contradict each other and that neither a later note nor a person settled.

        To settle a conflict, call ``resolve`` with the note to keep, or add a note that states the truth.
        """
        return await self._call("conflicts", scope)

    async def terms(self, id: str, *, scope: Scope | None = None) -> List[Term]:
        """Return the terms of a note, each with the number of notes that contain it. Raises ``NotFound``."""
        return await self._call("terms", scope, id=id)

    async def history(self, id: str, *, scope: Scope | None = None) -> List[Revision]:
        """Return every revision of a note: the change, its cause, and whether it is live. Raises ``NotFound``."""
        return await self._call("history", scope, id=id)

    # ---------------------------------------------------------------------------------------------------------- change

    async def update(self, id: str, /, *, scope: Scope | None = None, **fields: Any) -> Note:
        """Set fields of a note as a revision that can be reverted. Raises ``NotFound``, ``InvalidInput``."""
        return await self._call("update", scope, id=id, fields=fields)

    async def link(
        self,
        source: str,
        target: str,
        type: LinkType | str = LinkType.RELATES,
        *,
        reason: str = "",
        scope: Scope | None = None,
    ) -> Link:
        """Link two notes, as a revision of the ``source`` note. ``unlink`` removes the link.

        ``type`` is ``RELATES``, ``SUPERSEDES`` (the target is outdated from then on), ``UPDATES`` (a part of the target
        is outdated) or ``CONTRADICTS``. Jobs do not change this decision. Raises ``NotFound``, ``InvalidInput``.
        """
        return await self._call("link", scope, source=source, target=target, type=type, reason=reason)

    async def unlink(
        self, source: str, target: str, type: LinkType | str = LinkType.RELATES, *, scope: Scope | None = None
    ) -> Link:
        """Remove a link of any origin, as a revision of the note that has it, and return the link.

        ``type`` is ``RELATES``, ``SUPERSEDES``, ``UPDATES`` or ``CONTRADICTS``. Jobs do not make the link again;
        ``link`` can. A note without its SUPERSEDES link is valid again: ``memory.unlink(new, old, "SUPERSEDES")``.
        Raises ``NotFound``, and ``InvalidInput`` if the link does not exist.
        """
        return await self._call("unlink", scope, source=source, target=target, type=type)

    async def resolve(self, keep: str, over: str, *, reason: str = "", scope: Scope | None = None) -> Link:
        """Settle a conflict: ``keep`` stays true, and ``over`` is outdated from then on. Returns the SUPERSEDES link.

        ``over`` ranks below ``keep``, ``current_only`` leaves it out, and ``conflicts`` does not list the pair. It is
        valid until ``keep`` begins; never, if it is the newer note. ``keep`` regains the confidence that the conflict
        cost it. A second call with the notes swapped replaces the first, and ``unlink(keep, over, "SUPERSEDES")`` opens
        the conflict again. Example: ``memory.resolve(conflict.other.id, conflict.note.id, reason="I asked Ann")``.
        Raises ``NotFound``, and ``InvalidInput`` for notes that do not contradict each other.
        """
        return await self._call("resolve", scope, keep=keep, over=over, reason=reason)

    async def revert(self, id: str, version: int, *, scope: Scope | None = None) -> Note:
        """Restore an earlier version of a note. Raises ``NotFound``, ``InvalidInput``."""
        return await self._call("revert", scope, id=id, version=version)

    async def revert_effects(self, id: str, *, scope: Scope | None = None) -> List[Note]:
        """Revert all changes that one note caused in others, in one transaction, and return the changed notes.

        Revisions that jobs based on the note are deactivated, and notes derived from it are archived. A merge that it
        caused is undone. The note itself and its own links stay. ``revert`` restores each changed note; a second call
        changes nothing. Raises ``NotFound``.
        """
        return await self._call("revert_effects", scope, id=id)

    async def archive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Archive a note: searches and lists leave it out unless they include archived notes.

        Raises ``NotFound``, and ``InvalidInput`` if the note is archived already.
        """
        return await self._call("archive", scope, id=id)

    async def unarchive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Restore a note that was archived or has decayed. A note that a person restored does not decay again.

        Raises ``NotFound``, and ``InvalidInput`` for a note that is not archived, was merged or is in quarantine.
        """
        return await self._call("unarchive", scope, id=id)

    async def review(self, *, limit: int = 100, cursor: str | None = None, scope: Scope | None = None) -> Page:
        """Return a page of the notes on probation, in the order of arrival.

        These are notes of writers without full trust, and notes that look like instructions. They are found, but stay
        out of the core memory, the profile, lessons and insights until ``confirm``. Pass the page's ``cursor`` to get
        the next page.
        """
        return await self._call("review", scope, limit=limit, cursor=cursor)

    async def confirm(self, id: str, *, scope: Scope | None = None) -> List[Note]:
        """End the probation of a note and of the other parts of its event, and return the changed notes.

        They get the trust of their role, and no flags. ``revert`` undoes it. Raises ``NotFound``, ``PermissionDenied``
        for a caller below full trust, and ``InvalidInput`` if the note is not on probation.
        """
        return await self._call("confirm", scope, id=id)

    async def quarantine(
        self, id: str | None = None, reason: str = "", *, principal: str | None = None, scope: Scope | None = None
    ) -> List[Note]:
        """Quarantine all notes of a note's event and revert everything derived from them, in one transaction.

        Then only ``search(quarantined=True)`` finds the note, and jobs skip it. Notes made from it are archived, and
        others lose what it contributed. Returns the changed notes. Raises ``NotFound``, and ``InvalidInput`` if the
        note is in quarantine already.

        ``principal`` quarantines all events of a writer instead, and reverts all its changes of other notes, except
        deletions; a server requires the right admin.
        """
        require_one("what to quarantine: an id or a principal", id, principal)
        return await self._call("quarantine", scope, id=id, reason=reason, principal=principal)

    async def release(
        self, id: str | None = None, *, principal: str | None = None, scope: Scope | None = None
    ) -> List[Note]:
        """Release a note from quarantine, restore what the quarantine reverted, and return the changed notes.

        ``principal`` ends the quarantine of a writer. Raises ``NotFound``, and ``InvalidInput`` if the note or the
        principal is not in quarantine.
        """
        require_one("what to release: an id or a principal", id, principal)
        return await self._call("release", scope, id=id, principal=principal)

    async def delete(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        session: str | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Destroy a note or an event, or all events of a source file or a session, with everything derived from them.

        ``source`` is the path that the file was imported under (``./chat.txt`` equals ``chat.txt``).
        Returns the number of deleted notes. Raises ``NotFound`` for an unknown id.
        """
        require_one("what to delete: an id, a source or a session", id, source, session)
        return await self._call("delete", scope, id=id, source=source, session=session)

    async def delete_scope(self, *, scope: Scope | None = None) -> int:
        """Destroy a whole scope, tombstones included, and return the number of deleted notes.

        Its last bytes leave the files at once, or when no other reader uses them: ``flush`` waits for that.
        """
        return await self._call("delete_scope", scope)

    # ----------------------------------------------------------------------------------------------------------- learn

    async def feedback(
        self,
        search_id: str,
        used: Iterable[str] | None = None,
        outcome: Outcome | None = None,
        *,
        answer: str | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Report which hits of a search were useful, and whether the task succeeded or failed.

        Pass the ids as ``used`` or, if nobody knows them, the text of the ``answer``: the hits that it cites by id, or
        whose words it repeats, count as useful. Useful notes decay later, see ``zettel.scoring.strength``, and the
        ranking learns from them. A second report replaces the first; an ``answer`` never replaces named ids.
        Raises ``NotFound`` for a search that is not in the log, ``InvalidInput`` for a note that is not a hit of it,
        ``PermissionDenied`` for a principal below full trust.

        Example: ``memory.feedback(hits[0].search_id, answer="It is in the boathouse.")``
        """
        await self._call("feedback", scope, search_id=search_id, used=used, outcome=outcome, answer=answer)

    async def searches(self, *, scope: Scope | None = None) -> List[LoggedSearch]:
        """Return the log of searches, oldest first: question, hits and feedback."""
        return await self._call("searches", scope)

    async def tune(
        self,
        into: str | Path,
        *,
        decoder: str | Path | None = None,
        scopes: Iterable[Scope] | None = None,
        on_progress: Callable[[str, int, int], None] | None = None,
        scope: Scope | None = None,
    ) -> Tuned:
        """Train a memory decoder on the logged feedback, and write it into a folder if it ranks better.

        Trains on this scope, or on ``scopes``. Starts from the scorer in the folder, else from ``decoder``, else from
        the shipped one. Search with ``scorer="decoder:FOLDER"``. A scorer that is not better on held-out searches is
        not written, see ``Tuned``. Raises ``InvalidInput`` for too little feedback, ``ScorerError`` if the folder
        contains something else, ``MissingExtra`` without torch.
        """
        return await self._call("tune", scope, into=into, decoder=decoder, scopes=scopes, on_progress=on_progress)

    # ----------------------------------------------------------------------------------------------- import and export

    async def import_transcript(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        conversation: str | None = None,
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        speakers: Iterable[str] | None = None,
        map_user: Mapping[str, str] | None = None,
        session_gap: float | None = None,
        redact: bool = False,
        redact_region: str | None = None,
        scope_by: ScopeBy | None = None,
        edits: bool = False,
        source: str | None = None,
        trust: float = 1.0,
        dry_run: bool = False,
        on_progress: Progress | None = None,
        on_rejected: OnRejected | None = None,
        scope: Scope | None = None,
    ) -> ImportReport:
        """Import a transcript, a folder or a zip of transcripts. A second import adds only new events.

        ``conversation`` selects one by name. ``tz`` (Europe/Oslo) is the zone of times without one, and of ``since``
        (inclusive) and ``until`` (exclusive); these two skip undated records. ``columns`` maps event fields to the
        columns of a table: {"content": "Text"}. ``speakers`` imports only these names. ``map_user`` renames speakers
        first: {"Bob": "Robert"}. ``session_gap`` is the number of silent hours that ends a session of messages without
        one (0: no sessions; 6 by default for chats). ``redact`` removes e-mail addresses, phone numbers, card numbers
        and keys before storing; ``redact_region`` (NO) also the phone numbers of that country without its prefix.
        ``scope_by`` gives each speaker (``user``), place (``channel``) or project of a coding agent (``project``) a
        scope. A record changes a stored event with its id only if sender and file are the same; with ``edits``, also
        from other files, and the edited notes of an exported vault change theirs. ``source`` replaces the path in
        reports and events. ``trust`` (0 to 1) is the highest trust in the records, see ``acting_as``. ``dry_run``
        stores nothing and reports what it would store. ``on_progress`` receives the number of records read and in all,
        ``on_rejected`` the rejected records as they come.

        A file of the format ``zettel`` restores whole memories: a single one into ``scope`` or into this memory's own
        scope if that is named; otherwise each keeps its scope. Raises ``UnknownFormat``, ``BadRecord``,
        ``MissingExtra`` for ``redact`` without ``[redact]``, and ``InvalidInput``, also for a whole memory whose scope
        is not empty.
        """
        return await self._call(
            "import_transcript", scope, path=path, format=format, conversation=conversation, tz=tz, columns=columns,
            since=since, until=until, speakers=speakers, map_user=map_user, session_gap=session_gap, redact=redact,
            redact_region=redact_region, scope_by=scope_by, edits=edits, source=source, trust=trust, dry_run=dry_run,
            on_progress=on_progress, on_rejected=on_rejected,
        )  # fmt: skip

    async def estimate_import(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        conversation: str | None = None,
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        speakers: Iterable[str] | None = None,
        map_user: Mapping[str, str] | None = None,
        session_gap: float | None = None,
        redact: bool = False,
        redact_region: str | None = None,
        scope_by: ScopeBy | None = None,
        edits: bool = False,
        source: str | None = None,
        trust: float = 1.0,
        scope: Scope | None = None,
    ) -> Estimate:
        """Estimate the language model calls of an import. Calls no model and stores nothing.

        zettel skips turns that it has annotated already, and counts turns of any scope that wait for the model.
        Raises ``InvalidInput`` without a model or for a whole memory, and what ``import_transcript`` raises.
        """
        return await self._call(
            "estimate_import", scope, path=path, format=format, conversation=conversation, tz=tz, columns=columns,
            since=since, until=until, speakers=speakers, map_user=map_user, session_gap=session_gap, redact=redact,
            redact_region=redact_region, scope_by=scope_by, edits=edits, source=source, trust=trust,
        )  # fmt: skip

    async def export(
        self,
        to: str | Path | BinaryIO,
        format: str = "auto",
        *,
        include: Iterable[str] = (),
        all_scopes: bool = False,
        on_progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> ExportReport:
        """Write a scope to a file, an open binary file or a folder, and report how much was written.

        ``jsonl`` writes one event per line, importable as a transcript; ``include=["notes"]`` adds readable notes.
        ``markdown`` writes an Obsidian vault, one file per note; it never overwrites files of others or edited files.
        ``graphml`` writes notes and links for Gephi; ``include=["terms", "events"]`` adds these. ``zettel`` writes
        everything (histories, links, vectors, tombstones, the scope's secret) for ``import_transcript`` to restore in
        any store, with ``all_scopes`` for every scope. By default the suffix .graphml or .zettel selects the format,
        else it is ``jsonl``. A file is complete or absent. ``on_progress`` receives the numbers done and in all.
        Raises ``UnknownFormat``, ``InvalidInput``.
        """
        return await self._call(
            "export", scope, to=to, format=format, include=include, all_scopes=all_scopes, on_progress=on_progress
        )

    async def dump(self, *, scope: Scope | None = None) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Stream every event of a scope with its notes, in the order of arrival."""
        backend = await self._ready(scope)
        async for entry in backend.stream("dump", {}, scope):
            yield entry

    # -------------------------------------------------------------------------------------------------------- maintain

    async def scopes(self) -> List[Scope]:
        """Return the scopes that contain something."""
        return await self._call("scopes", None)

    async def flush(self, timeout: float | None = None, *, scope: Scope | None = None) -> None:
        """Run, or wait for, all pending jobs of the store, or of one scope.

        Raises ``FlushTimeout`` after ``timeout`` seconds, ``JobFailed`` if a job failed.
        """
        await self._call("flush", scope, timeout=timeout)

    async def evolve(self, timeout: float | None = None, *, scope: Scope | None = None) -> Evolved:
        """Run the pending jobs, let the notes of a scope improve each other, and count the changes.

        Shared words of neighbours join a note's keywords. Importance follows the links. Duplicates are merged. Dense
        regions yield insights, people a profile (see ``context``), and outcomes of actions a lesson. Each change is a
        revision: ``history`` shows it and ``revert`` reverts it. A second run changes nothing until notes arrive.
        Raises what ``flush`` raises.
        """
        return await self._call("evolve", scope, timeout=timeout)

    async def evolve_later(self, *, scope: Scope | None = None) -> bool:
        """Queue ``evolve`` for any process that runs jobs, after all pending jobs of single notes.

        Returns False if nothing was written in the scope since this memory queued it last: then nothing is queued.
        """
        return await self._call("evolve_later", scope)

    async def jobs(self, *, scope: Scope | None = None) -> List[Job]:
        """Return unfinished jobs: queued, running, or failed with their error."""
        return await self._call("jobs", scope)

    async def retry_jobs(self, id: str | None = None, *, scope: Scope | None = None) -> int:
        """Queue failed jobs again, or only the job with this id, and return their number. Raises ``NotFound``."""
        return await self._call("retry_jobs", scope, id=id)

    async def cancel_job(self, id: str, *, scope: Scope | None = None) -> Job:
        """Remove a queued or failed job from the queue and return it.

        Raises ``NotFound``, and ``InvalidInput`` for a running job and for a purge, which completes a delete.
        """
        return await self._call("cancel_job", scope, id=id)

    async def reembed(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every note with this memory's embedder, switch to it, and return the number of embedded notes.

        It can be interrupted and run again, or left to the next memory with this embedder. Searches use the old
        vectors until the switch. ``on_progress`` receives the numbers embedded and in all. Raises ``JobFailed``.
        """
        return await self._call("reembed", None, on_progress=on_progress)

    async def stats(self, *, scope: Scope | None = None) -> dict[str, Any]:
        """Return the counts of a scope (None: of all), the store, embedder and annotator, and the cost of models."""
        return await self._call("stats", scope)

    async def usage(self, limit: int = 10, *, scope: Scope | None = None) -> Usage:
        """Return how the notes of a scope are used, with at most ``limit`` entries in each list, see ``Usage``.

        The most and the least used notes, duplicates, contradictions, derived notes with changed sources, and the
        largest sessions. It reads the whole scope. Raises ``InvalidInput``.
        """
        return await self._call("usage", scope, limit=limit)

    async def check(self, repair: bool = False) -> List[str]:
        """Return the problems of the store, one line each; ``repair`` rebuilds derived data."""
        return await self._call("check", None, repair=repair)

    async def cypher(self, query: str, /, **params: Any) -> List[dict[str, Any]]:
        """Run a read-only Cypher query on a memory in Neo4j, and return each row as a dict by column.

        ``params`` are the query's parameters. The query sees the whole database, across scopes: use
        ``{scope: $scope}`` with ``scope=memory.scope.key`` to stay in one, and never put untrusted text into the query.
        Nodes and relationships become dicts of their properties, relationships also with their ``type``. Limits:
        30 seconds, 10,000 rows, no LOAD CSV, and only procedures that list indexes and labels.

        Raises ``InvalidQuestion`` for any other query, ``StoreError`` if the memory is not in Neo4j.
        """
        return await self._call("cypher", None, query=query, params=params)
