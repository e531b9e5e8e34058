"""Operations that search, and that learn from feedback on searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from zettel.core.arguments import (
    Time,
    list_of,
    moment_of,
    require_id,
    require_path,
    require_tokens,
    scopes_of,
    share,
    whole_number,
)
from zettel.core.authority import is_on_probation
from zettel.core.changes import touch
from zettel.core.conditions import filter_of
from zettel.core.external_ids import note_id_of
from zettel.errors import InvalidInput, InvalidQuestion
from zettel.local.local_memory import LocalMemory
from zettel.local.read import events, list_
from zettel.model import Example, Hit, Kind, LoggedSearch, Note, Outcome, Scope, Tuned
from zettel.model.hits import CONTEXT_HITS
from zettel.ports.query import SearchRequest
from zettel.search.hits import questions_of

if TYPE_CHECKING:
    from zettel.ports import Reranker
    from zettel.scoring import ScorerSpec
    from zettel.scoring.tuning import TraitRecorder
    from zettel.search.gather import Gathered
    from zettel.search.session_context import Turn


def _packed(question: str, search: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search whose hits are packed: those of the caller, and the defaults.

    Outdated notes are left out unless the question or ``as_of`` is about the past.
    """
    from zettel.search.question_kind import asks_about_past

    about_past = search.get("as_of") is not None or (isinstance(question, str) and asks_about_past(question))
    return {"k": CONTEXT_HITS, "current_only": not about_past} | search


async def search_many(
    memory: LocalMemory,
    questions: Iterable[str],
    k: int = 10,
    *,
    as_of: Time | None = None,
    known_at: Time | None = None,
    now: Time | None = None,
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
    **conditions: Any,
) -> list[list[Hit]]:
    """``conditions`` are the arguments of ``filter_of``."""
    if isinstance(questions, str):
        raise InvalidInput("questions must be a list: use search for a single question")
    engine, scope = memory.use(scope)
    places = None if scopes is None else scopes_of(scopes)
    common: dict[str, Any] = {
        "k": whole_number("k", k), "known_at": moment_of("known_at", known_at),
        "as_of": moment_of("as_of", as_of, local=True), "now": moment_of("now", now, local=True),
        "filter": filter_of(**conditions),
        "min_score": share("min_score", min_score), "min_trust": share("min_trust", min_trust),
        "explain": explain, "current_only": bool(current_only),
        "log": log, "archived": archived, "quarantined": quarantined,
        "recalls": True, "restore_decayed": restore_decayed,
    }  # fmt: skip
    texts = list_of("questions", questions, "questions")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidQuestion(f"a question must be a str, not {type(text).__name__}")
    queries = [SearchRequest(text=text, **common) for text in texts]
    first, chosen = await memory.scorers(scorer)
    results = await engine.searcher.search_scopes(
        [scope] if places is None else places, queries, first, partial(_stages, memory, scorer, chosen)
    )
    if places is None:
        (ranked,) = results
    else:
        ranked = [_joined(places, of_question, common["k"]) for of_question in zip(*results, strict=True)]
    touch(hit.note.id for hits in ranked for hit in hits)
    return ranked


async def _stages(
    memory: LocalMemory, requested: ScorerSpec, chosen: Sequence[Reranker], scope: Scope
) -> Sequence[Reranker]:
    """Return the rerankers of a search in a scope: those chosen, else the learned preferences."""
    if requested is not None or memory.scorer is not None:
        return chosen
    from zettel.search.learned import learned_stages

    return await learned_stages(memory.use(scope)[0].store, scope)


def _joined(scopes: Sequence[Scope], results: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Return the best hits of several scopes by their calibrated scores, each with its scope."""
    pairs = zip(scopes, results, strict=True)
    hits = [hit.model_copy(update={"scope": scope}) for scope, found in pairs for hit in found]
    return sorted(hits, key=lambda hit: -hit.score)[:k]


async def context(
    memory: LocalMemory,
    question: str,
    max_tokens: int,
    *,
    profile: bool = False,
    omit_flagged: bool = False,
    scope: Scope | None = None,
    search: dict[str, Any],
) -> str:
    require_tokens(max_tokens)

    from zettel.search.pack import pack

    (hits,) = await search_many(memory, [question], scope=scope, **_packed(question, search))
    questions = await _questions(memory, hits, scope, search)
    today = _today(search)
    if not profile or search.get("as_of") is not None or search.get("known_at") is not None:
        return pack(hits, max_tokens, questions=questions, omit_flagged=omit_flagged, today=today)

    from zettel.evolve.profile import shortened
    from zettel.model.tags import PROFILE
    from zettel.search.pack import OPENING_SHARE, estimate_tokens

    profiles = (await list_(memory, kinds=[Kind.INSIGHT], tags=[PROFILE], limit=1, scope=scope)).notes
    others = [hit for hit in hits if hit.note.id not in {note.id for note in profiles}]
    most = int(OPENING_SHARE * max_tokens)
    opening = shortened(profiles[0].content, lambda text: estimate_tokens(text) <= most) if profiles else ""
    return pack(others, max_tokens, opening, questions, omit_flagged=omit_flagged, today=today)


def _today(search: Mapping[str, Any]) -> datetime:
    """Return the time of a search, by which a text marks past plans."""
    return moment_of("now", search.get("now") or search.get("as_of")) or datetime.now(timezone.utc)


async def _questions(
    memory: LocalMemory, hits: Iterable[Hit], scope: Scope | None, search: dict[str, Any]
) -> dict[str, Note]:
    """Return the notes that hits of a search answer, by id."""
    engine, scope = memory.use(scope)
    known_at = moment_of("known_at", search.get("known_at"))
    by_scope: dict[Scope, list[Hit]] = defaultdict(list)
    for hit in hits:
        by_scope[hit.scope or scope].append(hit)
    questions: dict[str, Note] = {}
    for place, found in by_scope.items():
        questions |= await questions_of(engine.store, place, found, known_at)
    return questions


async def answer_context(
    memory: LocalMemory,
    question: str,
    rounds: int = 3,
    *,
    max_tokens: int,
    scope: Scope | None = None,
    search: dict[str, Any],
) -> Gathered:
    from zettel.search.gather import gather
    from zettel.search.pack import pack

    require_tokens(max_tokens)
    engine, scope = memory.use(scope)
    questions: dict[str, Note] = {}
    arguments = _packed(question, search)

    async def find(texts: Sequence[str]) -> list[list[Hit]]:
        results = await search_many(memory, texts, scope=scope, **arguments)
        questions.update(await _questions(memory, chain.from_iterable(results), scope, search))
        return results

    return await gather(
        question,
        whole_number("rounds", rounds),
        find,
        None if engine.llm_client is None else partial(engine.llm_client.ask_about, scope),
        partial(pack, max_tokens=max_tokens, questions=questions, today=_today(search)),
        moment_of("now", search.get("now") or search.get("as_of")),
    )


async def session_context(
    memory: LocalMemory, session: str, max_tokens: int, *, scope: Scope | None = None
) -> str:  # fmt: skip
    from zettel.search.session_context import READ_TURNS, session_text, turns_of

    engine, scope = memory.use(scope)
    require_tokens(max_tokens)
    last = await events(memory, session, limit=READ_TURNS, scope=scope)
    ids = await engine.store.notes_of(scope, [event.event_id for event in last])
    notes = await engine.store.notes(scope, ids)
    return await anyio.to_thread.run_sync(session_text, turns_of(last, notes.values()), max_tokens)


async def examples(memory: LocalMemory, task: str, k: int = 3, *, scope: Scope | None = None) -> list[Example]:
    from zettel.local.examples import CANDIDATES, MIN_SCORE, example_of
    from zettel.search.session_context import READ_TURNS, turns_of

    engine, scope = memory.use(scope)
    k = whole_number("k", k)
    (hits,) = await search_many(
        memory, [task], CANDIDATES, role="user", min_score=MIN_SCORE, log=False, restore_decayed=False, scope=scope
    )
    sessions: dict[str, tuple[list[Turn], list[Note]]] = {}
    found: dict[str, Example] = {}
    for hit in hits:
        session = hit.note.session
        if session is None or len(found) == k:
            continue
        if session not in sessions:
            last = await events(memory, session, limit=READ_TURNS, scope=scope)
            ids = await engine.store.notes_of(scope, [event.event_id for event in last])
            notes = list((await engine.store.notes(scope, ids)).values())
            sessions[session] = turns_of(last, notes), notes
        example = example_of(*sessions[session], hit.note, hit.score)
        if example is not None and not is_on_probation(hit.note):
            found.setdefault(session, example)
    return list(found.values())


async def feedback(
    memory: LocalMemory,
    search_id: str,
    used: Iterable[str] | None = None,
    outcome: Outcome | None = None,
    *,
    answer: str | None = None,
    scope: Scope | None = None,
) -> None:
    engine, scope = memory.use(scope)
    require_id(scope, search_id)
    if answer is not None and not isinstance(answer, str):
        raise InvalidInput(f"answer must be a str, not {type(answer).__name__}")
    note_ids: Iterable[str] | None = used
    if used is not None and not isinstance(used, str):
        note_ids = [await note_id_of(engine.store, scope, id) for id in list_of("used", used, "note ids")]
    await engine.feedback.record(scope, search_id, note_ids, outcome, answer)
    engine.loop.wake()


async def searches(memory: LocalMemory, *, scope: Scope | None = None) -> list[LoggedSearch]:
    engine, scope = memory.use(scope)
    await engine.searcher.log.flush()
    return [search async for search in engine.store.searches(scope)]


async def tune(
    memory: LocalMemory,
    into: str | Path,
    *,
    decoder: str | Path | None = None,
    scopes: Iterable[Scope] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
    scope: Scope | None = None,
) -> Tuned:
    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.scoring.fusion import FusionScorer
    from zettel.scoring.tuned import load_for_tuning, save
    from zettel.scoring.tuning import tune

    engine, own = memory.use(scope)
    into = require_path("into", into)
    scorer = await anyio.to_thread.run_sync(load_for_tuning, into, decoder)

    async def repeat(scope: Scope, search: LoggedSearch, recorder: TraitRecorder) -> None:
        query = SearchRequest(search.question, k=1, now=search.asked_at)
        await engine.searcher.search(scope, [query], FusionScorer(), [recorder])

    trained_on = [own] if scopes is None else list(dict.fromkeys(scopes))
    logs = [(await searches(memory, scope=each), partial(repeat, each)) for each in trained_on]
    tuned, report = await tune(scorer, logs, on_progress or (lambda stage, done, total: None))
    if report.accepted:
        await anyio.to_thread.run_sync(save, tuned, into)
        memory.loaded_scorers.pop(f"decoder:{into}", None)
    return report
