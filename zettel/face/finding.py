"""Questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from zettel.arguments import Time, filter_of, moment_of, require_room, several, share, whole_number
from zettel.errors import InvalidInput, InvalidQuestion
from zettel.face.looking import Looking
from zettel.model import Hit, Kind, Scope
from zettel.query import Asked

if TYPE_CHECKING:
    from zettel.scoring import Effort, ScorerSpec
    from zettel.search.gather import Gathered


DEFAULT_TOKENS = 800
"""Size of a packed context, in tokens, unless another is asked for."""
CONTEXT_HITS = 50
"""Hits that a context is packed from: more than fit, so that short ones can fill what a long one leaves."""


class Finding(Looking):
    """What answers a question."""

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
        brings_back: bool = True,
        scope: Scope | None = None,
    ) -> list[Hit]:
        """The notes that answer a question, best first, each with its calibrated score and why it was found.

        ``as_of``: what was true then; ``known_at``: what had been recorded by then; ``since`` (included) and ``until``
        (excluded) bound ``occurred_at``; ``now`` is what "yesterday" in the question counts from, in days of its time
        zone; ``filter`` asks for metadata values. All of them hold before anything is ranked. ``current_only`` leaves
        out what was replaced by today. ``archived`` searches what was put away too, ``quarantined`` what is in
        quarantine: page by page, so it takes longer. A faded note that alone holds a rare word of the question is found
        without either, and comes back for good, unless ``brings_back`` is False. ``scorer`` names who ranks, see
        ``zettel.scoring.load_scorer``;
        ``effort`` says instead how much that may take: the default scorer alone, the memory decoder after it, or a
        cross-encoder after both. ``explain`` adds the path and all features. ``log`` gives the hits a ``search_id`` for
        ``feedback``, and keeps the question and its hits' ids: written in the background, and destroyed with any of
        these notes.
        Raises ``InvalidQuestion``, ``InvalidInput``, and what scorers raise: ``ScorerError``, ``MissingExtra``.
        """
        (hits,) = await self.search_many(
            [question], k, as_of=as_of, known_at=known_at, since=since, until=until, now=now, kinds=kinds, tags=tags,
            session=session, role=role, filter=filter, min_score=min_score, current_only=current_only,
            archived=archived, quarantined=quarantined, scorer=scorer, effort=effort, explain=explain, log=log,
            brings_back=brings_back, scope=scope,
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
        brings_back: bool = True,
        scope: Scope | None = None,
    ) -> list[list[Hit]]:
        """The hits of each question, in order: the same as from ``search`` one by one, sooner."""
        if isinstance(questions, str):
            raise InvalidInput("search_many takes a list of questions; for one there is search")
        engine, scope = await self._use(scope)
        common: dict[str, Any] = {
            "k": whole_number("k", k), "known_at": moment_of("known_at", known_at),
            "as_of": moment_of("as_of", as_of, local=True), "now": moment_of("now", now, local=True),
            "filter": filter_of(kinds, tags, session, role, since, until, filter),
            "min_score": share("min_score", min_score), "explain": explain, "current_only": bool(current_only),
            "log": log, "archived": archived, "quarantined": quarantined, "recalls": True, "brings_back": brings_back,
        }  # fmt: skip
        texts = several("questions", questions, "questions")
        for text in texts:
            if not isinstance(text, str):
                raise InvalidQuestion(f"a question is one text, and not of type {type(text).__name__}")
        asked = [Asked(text=text, **common) for text in texts]
        return await engine.finding.search(scope, asked, *await self._scorers(scorer, effort))

    async def context(
        self,
        /,
        question: str,
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
        require_room(max_tokens)

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
        /,
        question: str,
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

        require_room(max_tokens)
        engine, scope = await self._use(scope)
        wanted = {"k": CONTEXT_HITS, "log": False} | search
        return await gather(
            question,
            whole_number("rounds", rounds, "searches"),
            partial(self.search_many, scope=scope, **wanted),
            None if engine.desk is None else partial(engine.desk.asker, scope),
            partial(pack, max_tokens=max_tokens),
            moment_of("now", search.get("now") or search.get("as_of")),
        )
