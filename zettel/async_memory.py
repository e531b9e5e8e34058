"""The public face, for code that runs in an event loop; ``zettel.memory`` has ``Memory``, which drives it from any
other code.

Everything a memory does is one method here, checked, and handed on to the file that does it; the order of an event's
way is: remember, the jobs' work (embed, link), search.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import anyio.to_thread

from zettel.arguments import (
    Time,
    checked,
    cursor_of,
    filter_of,
    head_of,
    link_type_of,
    moment_of,
    require_storable,
    whole_number,
)
from zettel.errors import InvalidInput, MemoryClosed, NotFound, StoreError
from zettel.identity import Ordinals
from zettel.model import (
    TIME_MAX,
    Conflict,
    Event,
    EventRecord,
    Evolved,
    Hit,
    Job,
    JobKind,
    Kind,
    Link,
    LinkType,
    LoggedSearch,
    Neighbor,
    Note,
    OnConflict,
    Outcome,
    Page,
    Remembered,
    Revision,
    Scope,
    Term,
    Tuned,
)
from zettel.opening import Opening
from zettel.ports import Annotator, CypherStore, Embedder, GraphStore, Reranker, Scorer
from zettel.query import Asked

if TYPE_CHECKING:
    from zettel.engine import Engine
    from zettel.evolve.decay import Decay
    from zettel.exports.report import ExportReport
    from zettel.jobs.runners import RunnerSpec
    from zettel.llm.budget import Budget
    from zettel.llm.estimate import Estimate
    from zettel.llm.ports import LLM, ModelAnnotator
    from zettel.scoring import Effort, ScorerSpec
    from zettel.scoring.tuning import Reading
    from zettel.search.gather import Gathered
    from zettel.search.slots import Bank
    from zettel.transcripts.by_scope import ScopeBy
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport, OnRejected

DEFAULT_TOKENS = 800
"""Size of a packed context, in tokens, unless another is asked for."""
CONTEXT_HITS = 50
"""Hits that a context is packed from: more than fit, so that short ones can fill what a long one leaves."""
ERASE_PAGE = 500
"""Events destroyed in one transaction when a whole session or file is deleted."""
PURGE_PAUSES = (0.0, 0.05, 0.2, 0.75)
"""Seconds between attempts of ``delete_scope`` to get at pages that other readers still hold; then it is left to the
runner."""

List: TypeAlias = list
"""The builtin, inside a class that has a method of that name."""


class AsyncMemory:
    """A memory, for code that runs in an event loop. ``Memory`` has the same methods for all other code.

    ``url`` is a file (made when it is not there), the address of a Neo4j server such as ``neo4j://localhost:7687``, or
    a GraphStore. ``auth`` is the server's (user, password), or None for NEO4J_USERNAME and NEO4J_PASSWORD of the
    environment; ``database`` names another of its databases than ``neo4j``.
    ``llm`` names a language model that writes the notes and decides their links, in the background: any LiteLLM name
    such as ``openai/gpt-4o-mini``, several of which the next is asked when one fails, or a ``LiteLLM``. ``budget``
    bounds what it costs. ``annotator`` replaces what makes note fields, with or without a model. ``decay`` is a Decay
    by which ``evolve`` puts away what has faded: nothing, without one. ``embedder`` is None for the static model that
    is shipped, a sentence-transformers name or folder, a LiteLLM embedding name, or an Embedder. ``scorer`` ranks what
    is found: a name, a Scorer or a Reranker, see ``zettel.scoring.load_scorer``. ``scope`` is used wherever a call
    names none. ``runner`` is where jobs are done, see ``zettel.jobs.runners.load_runner``: here, or for ``"ray"`` by a
    Ray cluster. Opened by ``async with`` or by its first use.
    """

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        llm: LLM | None = None,
        annotator: Annotator | ModelAnnotator | None = None,
        budget: Budget | None = None,
        asks: bool = True,
        decay: Decay | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: ScorerSpec = None,
        scope: Scope | None = None,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        runner: RunnerSpec = None,
    ) -> None:
        _require_scope(scope)
        self.scope = scope or Scope()
        self._how = Opening(
            url, auth=auth, database=database, embedder=embedder, annotator=annotator, llm=llm, budget=budget,
            asks=asks, decay=decay,
        )  # fmt: skip
        self._runner = runner
        self._scorer = scorer
        self._loaded: dict[str, tuple[Scorer, tuple[Reranker, ...]]] = {}
        self._pid = os.getpid()
        self._engine: Engine | None = None
        self._closed = False
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------------------------------------ open and close

    async def open(self) -> AsyncMemory:
        """Open the store and begin to work off its jobs. Raises what the store's ``open`` raises."""
        async with self._opening:
            self._require_usable()
            if self._engine is None:
                stages: tuple[Reranker, ...] = ()
                if self._scorer is not None:
                    _, stages = await self._scorers()  # what cannot be loaded is told now, not by the first search
                from zettel.engine import start  # brings in numpy and the rooms: not before they are needed
                from zettel.jobs.runners import load_runner

                self._engine = await start(self._how, load_runner(self._runner))
                self._engine.slots.bank = _bank(stages)
                self._loop = asyncio.get_running_loop()
        return self

    async def close(self) -> None:
        """Stop working and close the store. Jobs that are not done stay in it, for whoever opens it next."""
        if self._engine is not None and not self._closed:
            self._closed = True
            if self._loop is asyncio.get_running_loop():
                await self._engine.close()
            else:  # what worked in the other loop ended with it
                await self._engine.store.close()
        self._closed = True

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

    async def _use(self, scope: Scope | None) -> tuple[Engine, Scope]:
        self._require_usable()
        _require_scope(scope)
        if self._engine is None:
            await self.open()
        assert self._engine is not None
        return self._engine, scope or self.scope

    # ------------------------------------------------------------------------------------------------------ remember

    async def add(
        self,
        content: str = "",
        *,
        id: str | None = None,
        title: str | None = None,
        role: str | None = None,
        occurred_at: Time | None = None,
        session: str | None = None,
        source: Any = None,
        payload: Any = None,
        metadata: Mapping[str, Any] | None = None,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> str:
        """Remember one event and return the id of its (head) note; from then on it is durable and searchable.

        ``wait`` also does the jobs that follow. Raises ``InvalidEvent``, ``IdentityConflict``.
        """
        fields: dict[str, Any] = {
            "content": content, "id": id, "title": title, "role": role, "occurred_at": occurred_at,
            "session": session, "source": source, "payload": payload, "metadata": dict(metadata or {}),
        }  # fmt: skip
        (added,) = await self.add_many([fields], on_conflict=on_conflict, wait=wait, scope=scope)
        return added

    async def add_many(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> List[str]:
        """Remember events in one transaction; the ids of their head notes, in order.

        An event that was deleted from this scope before is not revived: ``WasDeleted`` names it, after the others
        were stored; ``remember`` reports it instead of raising. Raises what ``add`` raises.
        """
        accepted = [checked(event) for event in events]
        done = await self.remember(accepted, on_conflict=on_conflict, scope=scope)
        if wait:
            await self.flush(scope=scope)
        return [head_of(event, outcome) for event, outcome in zip(accepted, done, strict=True)]

    async def remember(
        self,
        events: Sequence[Event],
        *,
        on_conflict: OnConflict = "error",
        ordinals: Ordinals | None = None,
        scope: Scope | None = None,
    ) -> List[Remembered]:
        """Like ``add_many``, but tells of each event what became of it: what an importer needs.

        ``ordinals`` counts identical events over several calls of one file.
        """
        engine, scope = await self._use(scope)
        events = [checked(event) for event in events]
        done = await engine.remembering.remember(scope, events, on_conflict, ordinals or Ordinals())
        engine.loop.wake()
        return done

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
        source: str | None = None,
        dry_run: bool = False,
        on_progress: Progress | None = None,
        on_rejected: OnRejected | None = None,
        scope: Scope | None = None,
    ) -> ImportReport:
        """Remember a transcript, or all that are in a folder or zip; running it again adds only what is new.

        ``conversation`` takes the one of that name. ``tz`` (Europe/Oslo) is the zone of times that tell none in formats
        that know none, and of ``since`` (included) and ``until`` (excluded); undated records are left out by these.
        ``columns`` says which column of a table is which field of an event, as {"content": "Text"}. ``speakers`` are
        the only ones wanted, by the names that ``map_user`` gives: {"Bob": "Robert"} has Robert say what Bob said.
        ``session_gap`` is the silence in hours that ends a session of messages that have none (0: they get none; by
        default 6 for chats). ``redact`` takes e-mail addresses, phone numbers, card numbers and keys out before
        anything is stored, and ``redact_region`` (NO) also phone numbers as they are told within that country.
        ``scope_by`` has each speaker (``user``) or place where things are said (``channel``) be the user of a scope.
        ``source`` is what reports and events call the path. A ``dry_run`` stores nothing and reports what would be.
        ``on_progress`` is told the records read and those in all, ``on_rejected`` what cannot be stored, as it comes:
        the report holds the first of it.

        A file of the format ``zettel`` brings whole memories back as they were exported: a single one comes into
        ``scope``, or this memory's own one if it has a name; else each keeps its own. Raises ``UnknownFormat``,
        ``BadRecord``, ``MissingExtra`` to redact without the packages of ``[redact]``, and ``InvalidInput``, also for a
        whole memory that would come into a scope that is not empty.
        """
        from zettel.transcripts import importing, parts, wanted
        from zettel.transcripts.report import ImportReport

        engine, named = await self._use(scope)
        path = Path(path)
        chosen = wanted.wanted(
            conversation, tz, columns, since, until, speakers, map_user, session_gap, redact, redact_region, scope_by
        )
        if scope_by is not None and named.user is not None:
            raise InvalidInput(f"scope_by={scope_by!r} sets the user of each scope, and {named.user!r} is named too")
        if importing.is_whole(path, format):
            if chosen != wanted.Wanted() or dry_run:
                raise InvalidInput(
                    f"{source or path} holds whole memories: no conversation, time or speaker can be taken out of "
                    "them, nothing is redacted or put into other scopes, and there is no dry run"
                )
            into = named if scope is not None or named != Scope() else None
            report = await importing.import_whole(engine.restoring, path, into, source or str(path), on_progress)
            engine.loop.wake()
            return report
        transcript = await anyio.to_thread.run_sync(
            partial(parts.look, path, format, tables=bool(columns), called=source)
        )
        report = ImportReport(file=source or str(path), format=transcript.format, dry_run=dry_run)
        told: dict[str, Any] = {"on_progress": on_progress, "on_rejected": on_rejected}
        if not dry_run:
            await importing.import_parts(self, transcript, chosen, report, scope=named, **told)
            return report
        from zettel.llm.estimate import estimate, waiting

        reads = engine.desk is not None and engine.reader is not None
        turns = await waiting(engine.store) if reads else None
        await importing.foresee(engine.remembering, transcript, chosen, report, scope=named, unread=turns, **told)
        if turns is not None and engine.desk is not None and engine.reader is not None:
            report.estimate = await estimate(turns, engine.reader, engine.desk.model)
        return report

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
        source: str | None = None,
        scope: Scope | None = None,
    ) -> Estimate:
        """About what the language model will be asked if this transcript is imported. Asks nothing, stores nothing.

        What is known already is not read again; turns that wait for the model, in any scope, are counted with the new
        ones. Raises ``InvalidInput`` without a model or for a whole memory, and what ``import_transcript`` raises.
        """
        from zettel.transcripts.importing import is_whole

        engine, named = await self._use(scope)
        if engine.desk is None or engine.reader is None:
            raise InvalidInput("without a language model an import costs nothing: open the memory with llm=...")
        if is_whole(Path(path), format):
            raise InvalidInput(f"{path} holds a whole memory: no model is asked to bring it back")
        report = await self.import_transcript(
            path, format, conversation=conversation, tz=tz, columns=columns, since=since, until=until,
            speakers=speakers, map_user=map_user, session_gap=session_gap, redact=redact, redact_region=redact_region,
            scope_by=scope_by, source=source, dry_run=True, scope=named,
        )  # fmt: skip
        assert report.estimate is not None
        return report.estimate

    async def export(
        self,
        to: str | Path | BinaryIO,
        format: str = "jsonl",
        *,
        include: Iterable[str] = (),
        all_scopes: bool = False,
        on_progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> ExportReport:
        """Write a scope to a file, an open binary one or a folder; how much was written.

        ``jsonl``: every event, a line each, to be imported as a transcript; ``include=["notes"]`` adds the notes to be
        read. ``markdown``: an Obsidian vault in a folder, a file for each note; files that zettel did not write, or
        that were changed since, are never touched. ``graphml``: notes and links for Gephi and the like, and with
        ``include=["terms", "events"]`` these. ``zettel``: all there is, with histories, links, vectors and tombstones,
        to be brought back by ``import_transcript`` in any store as it was, of ``all_scopes`` if asked; it holds the
        scope's secret too. A file is complete or not there. ``on_progress`` is told what is done and what there is.
        Raises ``UnknownFormat``, ``InvalidInput``.
        """
        from zettel.exports import export

        engine, scope = await self._use(scope)
        scopes = await engine.store.scopes() if all_scopes else [scope]
        wanted = [include] if isinstance(include, str) else [*include]
        return await export(engine.store, scopes, to, format, wanted, on_progress)

    # ---------------------------------------------------------------------------------------------------------- find

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
        role: str | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        current_only: bool = False,
        archived: bool = False,
        quarantined: bool = False,
        scorer: ScorerSpec = None,
        effort: Effort | None = None,
        explain: bool = False,
        log: bool = True,
        scope: Scope | None = None,
    ) -> List[Hit]:
        """The notes that answer a question, best first, each with its calibrated score and why it was found.

        ``as_of``: what was true then; ``known_at``: what had been recorded by then; ``since`` (included) and ``until``
        (excluded) bound ``occurred_at``; ``now`` is what "yesterday" in the question counts from; ``filter`` asks for
        metadata values. All of them hold before anything is ranked. ``current_only`` leaves out what was replaced by
        today. ``archived`` searches what was put away too, ``quarantined`` what is in quarantine: page by page, so it
        takes longer. A faded note that alone holds a rare word of the question is found without either, and comes back
        for good. ``scorer`` names who ranks, see ``zettel.scoring.load_scorer``; ``effort`` says instead how much that
        may take: the default scorer alone, the memory decoder after it, or a cross-encoder after both. ``explain`` adds
        the path and all features. ``log`` gives the hits a ``search_id`` for ``feedback``, and keeps the question and
        its hits' ids: written in the background, and destroyed with any of these notes.
        Raises ``InvalidQuestion``, ``InvalidInput``, and what scorers raise: ``ScorerError``, ``MissingExtra``.
        """
        (hits,) = await self.search_many(
            [question], k, as_of=as_of, known_at=known_at, since=since, until=until, now=now, kinds=kinds, tags=tags,
            session=session, role=role, filter=filter, min_score=min_score, current_only=current_only,
            archived=archived, quarantined=quarantined, scorer=scorer, effort=effort, explain=explain, log=log,
            scope=scope,
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
        role: str | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        current_only: bool = False,
        archived: bool = False,
        quarantined: bool = False,
        scorer: ScorerSpec = None,
        effort: Effort | None = None,
        explain: bool = False,
        log: bool = True,
        scope: Scope | None = None,
    ) -> List[List[Hit]]:
        """The hits of each question, in order: the same as from ``search`` one by one, sooner."""
        if isinstance(questions, str):
            raise InvalidInput("search_many takes a list of questions; for one there is search")
        engine, scope = await self._use(scope)
        common: dict[str, Any] = {
            "k": whole_number("k", k), "as_of": moment_of("as_of", as_of), "known_at": moment_of("known_at", known_at),
            "now": moment_of("now", now), "filter": filter_of(kinds, tags, session, role, since, until, filter),
            "min_score": min_score, "explain": explain, "current_only": current_only, "log": log,
            "archived": archived, "quarantined": quarantined, "recalls": True,
        }  # fmt: skip
        asked = [Asked(text=question, **common) for question in questions]
        return await engine.finding.search(scope, asked, *await self._scorers(scorer, effort))

    async def context(
        self,
        question: str,
        /,
        max_tokens: int = DEFAULT_TOKENS,
        *,
        profile: bool = False,
        scope: Scope | None = None,
        **search: Any,
    ) -> str:
        """What ``search`` finds, packed for a prompt: in time order, with dates and speakers, within ``max_tokens``.

        ``profile`` opens it with what ``evolve`` found of the people who speak: what lasts, and what is recent. It is
        of now, so it is left out where ``as_of`` or ``known_at`` are asked for.
        """
        if max_tokens < 1:
            raise InvalidInput(f"max_tokens={max_tokens} leaves no room for a word")

        from zettel.search.pack import pack

        hits = await self.search(question, scope=scope, **({"k": CONTEXT_HITS, "log": False} | search))
        if not profile or search.get("as_of") is not None or search.get("known_at") is not None:
            return pack(hits, max_tokens)

        from zettel.evolve.profile import PROFILE

        known = (await self.list(kinds=[Kind.INSIGHT], tags=[PROFILE], limit=1, scope=scope)).notes
        others = [hit for hit in hits if hit.note.id not in {note.id for note in known}]
        return pack(others, max_tokens, known[0].content if known else "")

    async def answer_context(
        self,
        question: str,
        /,
        rounds: int = 3,
        *,
        max_tokens: int = DEFAULT_TOKENS,
        scope: Scope | None = None,
        **search: Any,
    ) -> Gathered:
        """What answers a question that one search does not, packed for a prompt, with the evidence it is packed from.

        After each of at most so many ``rounds`` of searches the memory's language model says what is still missing,
        and that is searched for next. Without a model, or once it cannot answer or its budget is spent, it is what was
        found by then; ``ended`` says so. ``search`` are arguments of ``search``. Raises what ``context`` raises.
        """
        from zettel.search.gather import gather
        from zettel.search.pack import pack

        if max_tokens < 1:
            raise InvalidInput(f"max_tokens={max_tokens} leaves no room for a word")
        engine, scope = await self._use(scope)
        wanted = {"k": CONTEXT_HITS, "log": False} | search
        return await gather(
            question,
            whole_number("rounds", rounds),
            partial(self.search_many, scope=scope, **wanted),
            None if engine.desk is None else partial(engine.desk.asker, scope),
            partial(pack, max_tokens=max_tokens),
            moment_of("now", search.get("now") or search.get("as_of")),
        )

    async def feedback(
        self, search_id: str, used: Iterable[str], outcome: Outcome | None = None, *, scope: Scope | None = None
    ) -> None:
        """Tell which notes a search found that were really of use, and how that for which it was asked ended.

        What is of use fades later; see ``zettel.evolve.strength``. Told again of the same search, it takes the place of
        what was told before. Raises ``NotFound`` for a search that is not in the log, ``InvalidInput`` for a note that
        it did not find.
        """
        engine, scope = await self._use(scope)
        await engine.feedback.tell(scope, search_id, used, outcome)

    async def searches(self, *, scope: Scope | None = None) -> List[LoggedSearch]:
        """The log of searches, oldest first: question, hits, and what was told of them."""
        engine, scope = await self._use(scope)
        await engine.finding.log.flush()
        return [search async for search in engine.store.searches(scope)]

    async def tune(
        self,
        into: str | Path,
        *,
        decoder: str | Path | None = None,
        scopes: Iterable[Scope] | None = None,
        on_progress: Callable[[str, int, int], None] | None = None,
        scope: Scope | None = None,
    ) -> Tuned:
        """Learn from the feedback in the log what is of use, and write the scorer into a folder if that is better.

        Learns of this scope, or of the ``scopes`` that are named, and goes on from what stands in the folder, or else
        from the ``decoder`` of a folder, by default the one that is shipped. Search with ``scorer="decoder:FOLDER"``.
        What was not better on searches held back is not written: see ``Tuned``. Raises ``InvalidInput`` where too
        little was told, ``ScorerError`` for a folder with something else in it, ``MissingExtra`` without torch.
        """
        from zettel.scoring.device import require_torch

        require_torch("the memory decoder")
        from zettel.scoring.fusion import FusionScorer
        from zettel.scoring.tuned import continued
        from zettel.scoring.tuning import tune

        engine, own = await self._use(scope)
        scorer = await anyio.to_thread.run_sync(continued, into, decoder)

        async def ask(scope: Scope, search: LoggedSearch, reading: Reading) -> None:
            asked = Asked(search.question, k=1, now=search.asked_at)
            await engine.finding.search(scope, [asked], FusionScorer(), [reading])

        wanted = [own] if scopes is None else list(dict.fromkeys(scopes))
        logs = [(await self.searches(scope=one), partial(ask, one)) for one in wanted]
        better, told = await tune(scorer, logs, on_progress or (lambda what, done, total: None))
        if told.accepted:
            await anyio.to_thread.run_sync(better.save, into)
            self._loaded.pop(f"decoder:{into}", None)
        return told

    async def _scorers(
        self, asked: ScorerSpec = None, effort: Effort | None = None
    ) -> tuple[Scorer, tuple[Reranker, ...]]:
        """The first stage and the rerankers of a search; what a name stands for is loaded once."""
        from zettel.scoring import load_scorer

        if effort is not None and asked is not None:
            raise InvalidInput("effort= chooses a scorer: do without scorer=")
        spec = f"effort:{effort}" if effort is not None else self._scorer if asked is None else asked
        spec = "fusion" if spec is None else spec
        if not isinstance(spec, str):
            return load_scorer(spec)
        if spec not in self._loaded:
            self._loaded[spec] = await anyio.to_thread.run_sync(load_scorer, spec)
        return self._loaded[spec]

    # ---------------------------------------------------------------------------------------------------------- look

    async def get(self, id: str, *, scope: Scope | None = None) -> Note | EventRecord:
        """A note (``n_…``) or an event (``e_…``) by its id. Raises ``NotFound``."""
        engine, scope = await self._use(scope)
        found: Mapping[str, Note | EventRecord]
        if id.startswith("e_"):
            found = await engine.store.events(scope, [id])
        else:
            found = await engine.store.notes(scope, [id])
        if id not in found:
            raise NotFound(scope, [id])
        return found[id]

    async def list(
        self,
        *,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        role: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        archived: bool = False,
        limit: int = 100,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Page:
        """Notes in the order of arrival, a page at a time: hand the page's ``cursor`` in again for the next one.

        ``archived``: instead all that is put away, merged and quarantined notes too, the newest first.
        """
        engine, scope = await self._use(scope)
        limit, place = whole_number("limit", limit), cursor_of(cursor)
        asked = filter_of(kinds, tags, session, role, since, until, filter)
        if archived:
            from zettel.search.away import put_away

            notes = await put_away(engine.store, scope, asked, place or TIME_MAX, limit + 1)
        else:
            notes = await engine.store.page(scope, asked, place, limit + 1)
        more = len(notes) > limit
        return Page(notes=tuple(notes[:limit]), cursor=str(notes[limit - 1].seq) if more else None)

    async def links(self, id: str, *, scope: Scope | None = None) -> List[Link]:
        """The links that start or end at a note. Raises ``NotFound``."""
        engine, scope = await self._use(scope)
        await self.get(id, scope=scope)
        return await engine.store.links(scope, [id])

    async def neighbors(self, id: str, hops: int = 2, *, scope: Scope | None = None) -> List[Neighbor]:
        """Notes within ``hops`` links of a note, the nearest first. Raises ``NotFound``."""

        from zettel.link.neighbors import neighbors

        engine, scope = await self._use(scope)
        await self.get(id, scope=scope)
        return await neighbors(engine.store, scope, id, hops)

    async def conflicts(self, *, scope: Scope | None = None) -> List[Conflict]:
        """Pairs of notes that say otherwise of the same, and nothing tells which of them still holds.

        To settle one, add a note that says how it is, or delete the wrong one.
        """
        from zettel.link.conflicts import conflicts

        engine, scope = await self._use(scope)
        return await conflicts(engine.store, scope)

    async def terms(self, id: str, *, scope: Scope | None = None) -> List[Term]:
        """The Terms of a note, with how many notes hold each. Raises ``NotFound``."""
        engine, scope = await self._use(scope)
        await self.get(id, scope=scope)
        return await engine.store.terms(scope, id)

    async def history(self, id: str, *, scope: Scope | None = None) -> List[Revision]:
        """Every version of a note: what changed, why, and whether it still counts. Raises ``NotFound``."""
        engine, scope = await self._use(scope)
        return await engine.editing.history(scope, id)

    # -------------------------------------------------------------------------------------------------------- change

    async def update(self, id: str, /, *, scope: Scope | None = None, **fields: Any) -> Note:
        """Set fields of a note, as a revision that can be taken back. Raises ``NotFound``, ``InvalidInput``."""
        engine, scope = await self._use(scope)
        note = await engine.editing.update(scope, id, fields)
        engine.loop.wake()
        return note

    async def link(
        self,
        source: str,
        target: str,
        type: LinkType | str = LinkType.RELATES,
        *,
        reason: str = "",
        scope: Scope | None = None,
    ) -> Link:
        """Link two notes, as a revision of the ``source`` that can be taken back: ``revert`` it to the version before.

        ``type``: it ``RELATES`` to the other, ``SUPERSEDES`` it (that holds no more from then on), or ``CONTRADICTS``
        it. Jobs do not say otherwise. Raises ``NotFound``, ``InvalidInput``.
        """
        from zettel.edit import LINKED_BY_HAND

        engine, scope = await self._use(scope)
        require_storable("reason", reason)
        made = await engine.editing.link(scope, source, target, link_type_of(type, LINKED_BY_HAND), reason)
        engine.loop.wake()
        return made

    async def revert(self, id: str, version: int, *, scope: Scope | None = None) -> Note:
        """Bring a note back to a version it had. Raises ``NotFound``, ``InvalidInput``."""
        engine, scope = await self._use(scope)
        note = await engine.editing.revert(scope, id, version)
        engine.loop.wake()
        return note

    async def take_back(self, id: str, *, scope: Scope | None = None) -> List[Note]:
        """Take back all that one note did to others, in one transaction; the notes that this changed, as they are now.

        Whatever jobs changed about other notes because of it no longer counts, and what was derived from it goes to
        the archive. The note itself and its own links stay, but a merge that it caused is taken apart. Each of these
        notes can be brought back by ``revert``; to run it again changes nothing. Raises ``NotFound``.
        """
        engine, scope = await self._use(scope)
        changed = await engine.taking_back.take_back(scope, id)
        engine.loop.wake()
        return changed

    async def archive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Put a note away: no search and no list shows it unless asked to, and nothing else about it changes.

        Raises ``NotFound``, and ``InvalidInput`` if it is away already.
        """
        engine, scope = await self._use(scope)
        return await engine.archiving.archive(scope, id)

    async def unarchive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Bring a note back that was put away or had faded; what a person brought back does not fade again.

        Raises ``NotFound``, and ``InvalidInput`` for a note that is not away, that was merged into another, or that a
        quarantine holds.
        """
        engine, scope = await self._use(scope)
        note = await engine.archiving.unarchive(scope, id)
        engine.finding.faded.forget(scope)
        engine.loop.wake()
        return note

    async def quarantine(self, id: str, reason: str = "", *, scope: Scope | None = None) -> List[Note]:
        """Take a note out of play, with all parts of its event, and take back all that rests on it, in one transaction.

        From then on only ``search(quarantined=True)`` finds it and no job looks at it. Notes made from it go to the
        archive, others fall back to what they were without it. Returns the notes that this changed, as they are now.
        Raises ``NotFound``, and ``InvalidInput`` if it is in quarantine already.
        """
        engine, scope = await self._use(scope)
        require_storable("reason", reason)
        changed = await engine.quarantining.quarantine(scope, id, reason)
        engine.loop.wake()
        return changed

    async def release(self, id: str, *, scope: Scope | None = None) -> List[Note]:
        """Bring a note back from quarantine, with what that took back; the notes that this changed, as they are now.

        Raises ``NotFound``, and ``InvalidInput`` if it is not in quarantine.
        """
        engine, scope = await self._use(scope)
        changed = await engine.quarantining.release(scope, id)
        engine.loop.wake()
        return changed

    async def delete(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        session: str | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Destroy a note or an event, or all of a source file or a session, with everything derived from it.

        Returns how many notes went. Raises ``NotFound`` for an unknown id.
        """
        engine, scope = await self._use(scope)
        if [id, source, session].count(None) != 2:
            raise InvalidInput("say what to delete: an id, a source or a session, one of them")
        if id is not None:
            gone = await engine.erasing.erase(scope, [id])
        else:
            gone = 0
            require_storable("source", source)
            require_storable("session", session)
            # By event, so that one whose newer wording came from elsewhere is found too.
            while events := await engine.store.events_from(scope, source, session, ERASE_PAGE):
                gone += await engine.erasing.erase(scope, events)
        engine.loop.wake()
        return gone

    async def delete_scope(self, *, scope: Scope | None = None) -> int:
        """Destroy all of a scope, with the tombstones of what was deleted from it before; how many notes went.

        Its last bytes leave the files at once, or as soon as no other reader holds them: ``flush`` waits for that.
        """
        engine, scope = await self._use(scope)
        gone = await engine.store.drop_scope(scope)
        for pause in PURGE_PAUSES:
            await asyncio.sleep(pause)
            if await engine.store.purge():
                return gone
        engine.loop.purge_later()
        return gone

    # ---------------------------------------------------------------------------------------------------- look after

    async def scopes(self) -> List[Scope]:
        """The scopes that hold something."""
        engine, _ = await self._use(None)
        return await engine.store.scopes()

    async def flush(self, timeout: float | None = None, *, scope: Scope | None = None) -> None:
        """Run, or wait for, all pending jobs of the store (of one scope, if given).

        Raises ``FlushTimeout`` after ``timeout`` seconds, ``JobFailed`` if one ended in an error.
        """
        engine, _ = await self._use(scope)
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        await engine.finding.log.flush()
        await engine.finding.faded.settle()
        await engine.loop.drain(scope, deadline)

    async def evolve(self, timeout: float | None = None, *, scope: Scope | None = None) -> Evolved:
        """Have the notes of a scope learn from each other, after its pending jobs; what that changed.

        Words that bind a note's neighbours join its keywords, its importance follows its links, notes that say the same
        become one, what belongs together gets an insight, what lasts of people a profile (see ``context``), and what
        came of acting a lesson. Each change is a revision that ``history`` shows and ``revert`` takes back. To run it
        again changes nothing until something new arrives. Raises what ``flush`` raises.
        """
        engine, scope = await self._use(scope)
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        return await engine.evolution.run(scope, deadline)

    async def evolve_later(self, *, scope: Scope | None = None) -> bool:
        """Queue what ``evolve`` does, for any process that works off jobs, after all that single notes wait for.

        False if nothing was written in the scope since this memory queued it last: then nothing is queued.
        """
        engine, scope = await self._use(scope)
        return await engine.evolution.later(scope)

    async def jobs(self, *, scope: Scope | None = None) -> List[Job]:
        """Jobs that are not done: queued, running, or failed with their error."""
        engine, _ = await self._use(scope)
        return await engine.store.jobs(scope)

    async def retry_jobs(self, id: str | None = None, *, scope: Scope | None = None) -> int:
        """Queue failed jobs again, or only the one of this id; how many. Raises ``NotFound``."""
        engine, _ = await self._use(scope)
        if id is not None:
            scope = (await self._job(engine, id, scope)).scope
        count = await engine.store.retry(scope, id)
        engine.loop.wake()
        return count

    async def cancel_job(self, id: str, *, scope: Scope | None = None) -> Job:
        """Take a job that waits or failed off the queue; what it was to do is not done.

        Raises ``NotFound``, and ``InvalidInput`` for one that is running, and for a purge, which ends a delete.
        """
        engine, _ = await self._use(scope)
        job = await self._job(engine, id, scope)
        if job.kind is JobKind.PURGE:
            raise InvalidInput(f"job {id} is the end of a delete: a purge cannot be cancelled")
        if not await engine.store.cancel(job.scope, id):
            raise InvalidInput(f"job {id} is running: only what waits or failed can be cancelled")
        return job

    async def _job(self, engine: Engine, id: str, scope: Scope | None) -> Job:
        job = next((job for job in await engine.store.jobs(scope) if job.id == id), None)
        if job is None:
            raise NotFound(scope or "the queue", [id])
        return job

    async def reembed(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every note with this memory's embedder and change over to it; how many notes were embedded.

        Can be stopped and run again, or left to the next ``Memory`` with this embedder; searches use the old vectors
        until the change. ``on_progress`` is told how many are embedded, of how many. Raises ``JobFailed``.
        """
        engine, scope = await self._use(None)
        engine.reembedding.on_progress = on_progress
        await engine.reembedding.queue(scope)
        await engine.loop.drain(scope, None)
        return engine.reembedding.done

    async def write_slots(
        self, *, anew: bool = False, scorer: ScorerSpec = None, scope: Scope | None = None
    ) -> int:
        """Write what is not there yet to the scope's slots, or ``anew`` all its notes; how many notes stand in them.

        Only a memory decoder with a bank has slots. They are kept up with what arrives where it is the memory's own
        scorer, and destroyed when a note is deleted or put in quarantine. Raises ``InvalidInput`` for a scorer that has
        no bank.
        """
        engine, scope = await self._use(scope)
        _, stages = await self._scorers(scorer)
        bank = _bank(stages)
        if bank is None:
            raise InvalidInput("that scorer has no bank of slots: train one with `zettel scorer train --bank 16`")
        return await engine.slots.write(scope, bank, anew)

    async def stats(self, *, scope: Scope | None = None) -> dict[str, Any]:
        """Counts of a scope (None: of all), and by which store, embedder and annotator they came about."""
        engine, _ = await self._use(scope)
        active = next((space for space in await engine.store.spaces() if space.active), None)
        info = engine.vectors.embedder.info
        return {
            "store": engine.store.name,
            "annotator": engine.annotator.name,
            **await self._model_stats(engine, scope),
            "embedder": active.name if active else info.name,
            "dimension": active.dim if active else info.dim,
            **await engine.store.counts(scope),
        }

    async def _model_stats(self, engine: Engine, scope: Scope | None) -> dict[str, Any]:
        """What language models have cost, in all, and what is left of the budget."""
        uses = await engine.store.model_use(scope)
        told: dict[str, Any] = {} if engine.desk is None else {"llm": engine.desk.model.name}
        if uses:
            told |= {
                "llm_calls": sum(use.calls for use in uses),
                "llm_hits": sum(use.hits for use in uses),
                "llm_tokens": sum(use.prompt_tokens + use.completion_tokens for use in uses),
                "llm_usd": round(sum(use.usd for use in uses), 6),
            }
        if engine.desk is not None and engine.desk.budget is not None:
            told["budget"] = await engine.desk.budget_left()
        return told

    async def check(self, repair: bool = False) -> List[str]:
        """What is wrong in the store, one line each; with ``repair`` what is derived is made anew."""
        engine, _ = await self._use(None)
        return await engine.store.check(repair)

    async def cypher(self, query: str, /, **params: Any) -> List[dict[str, Any]]:
        """The rows of a query in Cypher, each a dict by column: only for a memory that is kept in Neo4j.

        ``params`` are the query's parameters. It sees the whole database, past every scope: say ``{scope: $scope}``
        with ``scope=memory.scope.key`` to stay in one, and never put words of strangers into the query's text. Nodes
        come as dicts of their properties, relationships too, with their ``type``. It can only read, for at most 30
        seconds and 10,000 rows, without LOAD CSV and without procedures but those that ask indexes and labels.

        Raises ``InvalidQuestion`` for any other query, ``StoreError`` if the memory is not in Neo4j.
        """
        engine, _ = await self._use(None)
        if not isinstance(engine.store, CypherStore):
            raise StoreError(
                f"the {engine.store.name} store answers no Cypher: keep the memory in Neo4j, "
                'Memory("neo4j://localhost:7687", auth=(user, password))'
            )
        return await engine.store.cypher(query, params)

    async def dump(self, *, scope: Scope | None = None) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event of a scope with its notes, in the order of arrival, streaming."""
        engine, scope = await self._use(scope)
        async for entry in engine.store.dump(scope):
            yield entry


def _bank(stages: Sequence[Reranker]) -> Bank | None:
    """That of the first reranker which has one."""
    return next((bank for stage in stages if (bank := getattr(stage, "bank", None)) is not None), None)


def _require_scope(scope: Scope | None) -> None:
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInput(f"scope={scope!r} is not a Scope: use Scope(user=...)")
