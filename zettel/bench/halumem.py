"""HaluMem: recall of the sessions or memory points behind a question, and the rank of a fact against its old version.

As in the authors' evaluation, a user's sessions are stored one after the other, and each question is asked after its
session. So is each update: its content is the query, as in the authors' script.

``events="dialogue"`` stores the turns. HaluMem labels no turns, so evidence counts by session: the first session with
a memory point of that content. ``events="points"`` stores the labelled memory points instead, without the false ones
(interference), as if an extraction had been perfect; evidence counts by point.

An update is in order if the new version is found before every old one. It is measured on two rankings: of the query
that is the new version itself, and of the questions whose evidence is an updated point.

The authors' measures of extraction, update and answers all need a judge model. See ``zettel.bench.halumem_users`` for
the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event

from . import halumem_users
from .baselines import SIMPLE, CachingEmbedder, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import (
    OURS,
    Collection,
    Outcome,
    Progress,
    Question,
    load_scorers,
    rank,
    remember,
    run_settings,
    search,
    temporary_memory,
)
from .halumem_users import Point, Session
from .metrics import QuestionResult, ranking, recall, recall_any
from .results import Result, data_files

KS = (1, 5, 10)
DEPTH = 10
"""Turns that are searched for each place of a session, because several hits may belong to one session."""
UPDATE = "update"
ORDERS = ASKED_ORDER, QUERIED_ORDER = "order of questions", "order of updates"
"""Groups of results with only the new and the old versions of a fact, for questions and for updates as queries."""

Events: TypeAlias = Literal["dialogue", "points"]
"""Events to store: the turns of the dialogues, or the labelled memory points."""


class Probe(NamedTuple):
    """A question or an update as a query, and the evidence with the old versions of what it needs."""

    question: Question
    outdated: frozenset[str]


@dataclass
class Known:
    """The points of a user so far: the evidence and the old versions by content; questions without known evidence."""

    evidence: dict[str, str] = field(default_factory=dict)
    outdated: dict[str, frozenset[str]] = field(default_factory=dict)
    skipped: int = 0


async def run(
    path: Path,
    progress: Progress,
    ks: Sequence[int] = KS,
    events: Events = "dialogue",
    embedder: str | None = None,
    *,
    baselines: Sequence[str] = SIMPLE,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure zettel and ``baselines`` on the users of a file, for each of ``ks``; ``scorers`` adds rows by name.

    One user at a time is in a store. Raises ``BadRecord`` for a damaged file, ``InvalidInput`` for one without a
    question with evidence, and the errors of ``load_scorer``.
    """
    model = CachingEmbedder(load_embedder(embedder))
    simple, specs = load_baselines(baselines, model), {OURS: None, **load_scorers(scorers)}
    depth = max(ks) * (DEPTH if events == "dialogue" else 1)
    found, users, stored, skipped = Outcome({}, {}, 0.0), 0, 0, 0
    for user in halumem_users.read(path):
        users += 1
        probes, outcome = list[Probe](), Outcome({}, {}, 0.0)
        known, so_far, event_ids = Known(), list[Event](), dict[str, str]()
        async with temporary_memory(embedder=model) as memory:
            for number, session in enumerate(user.sessions, start=1):
                progress(f"user {users}", number, len(user.sessions))
                new = session.events if events == "dialogue" else _new_points(session, known)
                so_far += new
                event_ids |= await remember(memory, Collection(user.name, new, ()), _silent)
                asked = _probes(session, known, events)
                probes += asked
                collection = Collection(user.name, so_far, [probe.question for probe in asked])
                if asked:
                    for name, spec in specs.items():
                        await search(memory, name, spec, collection, event_ids, depth, outcome, _silent)
                    for name, baseline in simple.systems.items():
                        await rank(name, baseline, collection, depth, outcome, _silent)
        found = found.joined(_with_orders(outcome, probes, events))
        stored += len(so_far)
        skipped += known.skipped
    asked_results = found.results.get(OURS, [])
    kinds = sorted({result.group for result in asked_results if result.needed} - {UPDATE, *ORDERS})
    if not kinds:
        raise InvalidInput(f"{path} has no question with evidence: pass a file of HaluMem")
    measures = {f"questions @{k}": _recall(set(kinds), k) for k in ks}
    measures |= {f"{kind} @{max(ks)}": _recall({kind}, max(ks)) for kind in kinds}
    measures |= {f"updates @{k}": _recall({UPDATE}, k) for k in ks}
    measures |= {group: _is_new_first(group) for group in ORDERS}
    columns, rows = compare(found, measures, [f"questions @{k}" for k in ks] + [ASKED_ORDER], _is_answerable)
    unit = "sessions" if events == "dialogue" else "memory points"
    return Result(
        bench="halumem",
        data=data_files([path]),
        ran_on={"users": users, "events": stored},
        settings=run_settings(None, (), model, ks) | {"events stored": events},
        columns=[f"recall of {unit}", *columns],
        rows=rows,
        notes=[
            f"Recall of {unit} in the first {', '.join(map(str, ks))} places, each question and update after its "
            "session; order: share of cases in which the new version of a fact is found before every old one; AUROC "
            "of the first hit's score, questions with evidence against those without; ms for one search.",
            SIGNIFICANCE,
            f"Skipped: {skipped} questions whose evidence is not among the memory points so far.",
            "Not measured, because it needs a judge model: the authors' extraction, update and answer classes. "
            "`zettel bench answers halumem` measures the answers.",
            *simple.notes,
        ],
    )


def _silent(what: str, done: int, total: int) -> None:
    """Ignore the progress inside a session."""


def _new_points(session: Session, known: Known) -> list[Event]:
    points = {point.content: point for point in reversed(session.points) if not point.is_interference}
    return [
        Event(external_id=point.id, content=point.content, session=session.id, occurred_at=point.occurred_at)
        for point in reversed(points.values())
        if point.content not in known.evidence
    ]


def _probes(session: Session, known: Known, events: Events) -> list[Probe]:
    """Add the points of a session to ``known``, and return the queries after it."""
    updates = []
    for point in session.points:
        if point.is_interference or point.content in known.evidence:
            continue
        known.evidence[point.content] = session.id if events == "dialogue" else point.id
        old = frozenset(known.evidence[content] for content in point.outdated if content in known.evidence)
        known.outdated[point.content] = old - {known.evidence[point.content]}
        if known.outdated[point.content]:
            updates.append(point)
    probes = [_update(point, known) for point in updates]
    for asked in session.questions:
        evidence = [content for content in asked.evidence if content in known.evidence]
        if asked.evidence and not evidence:
            known.skipped += 1
            continue
        needed = frozenset(known.evidence[content] for content in evidence)
        old = frozenset[str]().union(*(known.outdated[content] for content in evidence)) - needed
        probes.append(Probe(Question(asked.text, asked.kind, needed), old))
    return probes


def _update(point: Point, known: Known) -> Probe:
    needed = frozenset([known.evidence[point.content]])
    return Probe(Question(point.content, UPDATE, needed), known.outdated[point.content])


def _with_orders(outcome: Outcome, probes: Sequence[Probe], events: Events) -> Outcome:
    """Return the outcome in evidence instead of events, and after it the orders of new and old versions."""
    results: dict[str, list[QuestionResult]] = {}
    for name, found in outcome.results.items():
        by_evidence = [_in_sessions(result) for result in found] if events == "dialogue" else found
        orders = [
            result._replace(
                group=QUERIED_ORDER if result.group == UPDATE else ASKED_ORDER,
                hits=[hit for hit in result.hits if not (result.needed | probe.outdated).isdisjoint(hit)],
                score=None,
            )
            for result, probe in zip(by_evidence, probes, strict=True)
            if probe.outdated
        ]
        results[name] = [*by_evidence, *orders]
    return outcome._replace(results=results)


def _in_sessions(result: QuestionResult) -> QuestionResult:
    sessions = (event.rpartition("/")[0] for event in ranking(result.hits))
    return result._replace(hits=[[session] for session in dict.fromkeys(sessions)])


def _recall(groups: set[str], k: int) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        return recall(result.hits, result.needed, k) if result.needed and result.group in groups else None

    return measure


def _is_new_first(group: str) -> Measure:
    return lambda result: recall_any(ranking(result.hits), result.needed, 1) if result.group == group else None


def _is_answerable(result: QuestionResult) -> bool | None:
    return None if result.group in (UPDATE, *ORDERS) else bool(result.needed)
