"""The commands search, context, core, session and feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from zettel.errors import InvalidInput

from .common import common, console, echo, notify, print_json
from .filter_options import (
    Archived,
    AsOf,
    Current,
    FilterJson,
    Kinds,
    KnownAt,
    Meta,
    MinScore,
    MinTrust,
    Now,
    Quarantined,
    Session,
    Since,
    Speaker,
    SpokenAs,
    Tags,
    Until,
    conditions,
)

if TYPE_CHECKING:
    from zettel.model import Role

EMPTY_CORE = "nothing is pinned, and no profile is derived: run `zettel evolve`, or pin a note with `edit ID --pin`"
_SCORER_HELP = "Scorer: fusion, decoder, cross-encoder, llm (the model of --llm), or an installed one."

Question: TypeAlias = Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")]
ScorerName: TypeAlias = Annotated[str | None, typer.Option("--scorer", metavar="NAME", help=_SCORER_HELP)]


def search(
    ctx: typer.Context,
    question: Question,
    k: int = typer.Option(10, "-k", "--k", help="Number of hits."),
    explain: bool = typer.Option(False, "--explain", "-e", help="Explain how each hit was found and ranked."),
    as_of: AsOf = None,
    known_at: KnownAt = None,
    since: Since = None,
    until: Until = None,
    now: Now = None,
    kind: Kinds = None,
    tag: Tags = None,
    session: Session = None,
    speaker: Speaker = None,
    role: SpokenAs = None,
    meta: Meta = None,
    filter: FilterJson = None,
    min_score: MinScore = None,
    min_trust: MinTrust = None,
    current: Current = False,
    archived: Archived = False,
    quarantined: Quarantined = False,
    scorer: ScorerName = None,
) -> None:
    """Find the notes that answer a question.

    \b
    Examples:
      zettel search "Where does Ann live?"
      zettel search "What did we decide?" -k 3 --explain
      zettel search "Where does Ann live?" --as-of 2024-01-31 --json
      zettel search "Where does Ann live?" --current
      zettel search "What became of the boat?" --archived
      zettel search "Which boat is cheap?" --filter '{"price": {"lt": 900}}'
    """
    options = common(ctx)
    with options.memory() as memory:
        hits = memory.search(
            question, k=k, as_of=as_of, known_at=known_at, since=since, until=until, now=now,
            kinds=kind, tags=tag, session=session, speaker=speaker, role=cast("Role | None", role),
            filter=conditions(meta, filter), min_score=min_score, min_trust=min_trust, current_only=current,
            archived=archived, quarantined=quarantined, scorer=scorer, explain=explain,
        )  # fmt: skip
        empty = "" if hits or options.json else options.why_none_match(memory, speaker)
    if options.json:
        print_json(hits)
    elif not hits:
        notify(empty)
    else:
        from .hits import show_hits

        show_hits(console(), hits, explained=k if explain else 0)
        for used_scorer in {hit.why.scorer for hit in hits if "(not " in hit.why.scorer}:
            notify(f"zettel: ranked by {used_scorer}")


def core(
    ctx: typer.Context,
    max_tokens: int = typer.Option(400, "--max-tokens", help="Largest size of the text in tokens."),
    task: str | None = typer.Option(None, "--task", metavar="TEXT", help="Also lessons for situations like this one."),
) -> None:
    """Print the core memory: pinned notes, the profile, and lessons.

    It belongs in every prompt. `edit --pin` pins a note. `evolve` derives the profile and the lessons.

    \b
    Examples:
      zettel core
      zettel core --user ann --max-tokens 200
      zettel core --task "The user reports a failed payment."
    """
    from zettel.integrations.core_memory import core as core_text

    options = common(ctx)
    with options.memory() as memory:
        text = core_text(memory, max_tokens, task=task)
        empty = "" if text or options.json else options.why_empty(memory, EMPTY_CORE)
    if options.json:
        print_json({"core": text})
    else:
        notify(empty) if empty else echo(text)


def context(
    ctx: typer.Context,
    question: Question,
    max_tokens: int = typer.Option(800, "--max-tokens", help="Largest size of the text in tokens."),
    profile: bool = typer.Option(False, "--profile", help="Begin with the profile of the speakers."),
    omit_flagged: bool = typer.Option(False, "--omit-flagged", help="Leave out notes that look like instructions."),
    rounds: int | None = typer.Option(
        None, "--rounds", metavar="N", help="Search up to N times for information that the model of --llm still needs."
    ),
    as_of: AsOf = None,
    known_at: KnownAt = None,
    since: Since = None,
    until: Until = None,
    now: Now = None,
    kind: Kinds = None,
    tag: Tags = None,
    session: Session = None,
    speaker: Speaker = None,
    role: SpokenAs = None,
    meta: Meta = None,
    filter: FilterJson = None,
    min_score: MinScore = None,
    min_trust: MinTrust = None,
    current: Current = False,
    archived: Archived = False,
    quarantined: Quarantined = False,
    scorer: ScorerName = None,
) -> None:
    """Print the hits of a search as text for a prompt.

    \b
    Examples:
      zettel context "Where does Ann live?" --max-tokens 400
      zettel context "What would Ann like?" --profile
      zettel context "Where was the dog of Ann's sister born?" --rounds 3 --llm openai/gpt-4o-mini
    """
    options = common(ctx)
    if rounds is not None and (profile or omit_flagged):
        raise InvalidInput("--profile and --omit-flagged cannot be combined with --rounds: leave one of them out")
    arguments: dict[str, Any] = {
        "max_tokens": max_tokens, "as_of": as_of, "known_at": known_at, "since": since, "until": until, "now": now,
        "kinds": kind, "tags": tag, "session": session, "speaker": speaker, "role": role,
        "filter": conditions(meta, filter), "min_score": min_score, "min_trust": min_trust,
        "archived": archived, "quarantined": quarantined, "scorer": scorer,
    }  # fmt: skip
    if current:  # else the memory decides by the question
        arguments["current_only"] = True
    with options.memory() as memory:
        if rounds is None:
            text = memory.context(question, profile=profile, omit_flagged=omit_flagged, **arguments)
            gathered = None
        else:
            gathered = memory.answer_context(question, rounds, **arguments)
            text = gathered.text
        empty = "" if text or options.json else options.why_none_match(memory, speaker)
    if options.json:
        print_json({"context": text} if gathered is None else gathered)
        return
    notify(empty) if empty else echo(text)
    if gathered is not None:
        rounds_done = "1 round" if gathered.rounds == 1 else f"{gathered.rounds} rounds"
        notify(f"zettel: {rounds_done} of searches: {gathered.ended}")
        for need in gathered.missing:
            notify(f"zettel: still missing: {need}")


def session(
    ctx: typer.Context,
    name: str = typer.Argument(metavar="SESSION", help="Name of the session."),
    max_tokens: int = typer.Option(800, "--max-tokens", help="Largest size of the text in tokens."),
) -> None:
    """Print the last turns of a session, after a summary.

    \b
    Examples:
      zettel session standup --max-tokens 400
    """
    options = common(ctx)
    with options.memory() as memory:
        text = memory.session_context(name, max_tokens)
        empty = "" if text or options.json else options.why_empty(memory, "this session has no turns")
    if options.json:
        print_json({"context": text})
    elif text:
        echo(text)
    else:
        notify(empty)


def feedback(
    ctx: typer.Context,
    search_id: str = typer.Argument(metavar="SEARCH", help="The search_id of the hits, from search --json."),
    used: list[str] = typer.Argument(None, metavar="[ID]...", help="The useful notes; none if no note was useful."),
    outcome: str | None = typer.Option(None, "--outcome", help="Outcome of the task: success or failure."),
    answer: str | None = typer.Option(None, "--answer", help="The text of the answer, instead of the ids."),
) -> None:
    """Report which notes of a search were useful. These decay later. The last report for a search counts.

    \b
    Examples:
      zettel feedback s_7c21… n_3f9a…
      zettel feedback s_7c21… n_3f9a… n_b5d0… --outcome success
      zettel feedback s_7c21… --answer "In the boathouse."
    """
    options = common(ctx)
    checked_outcome: Any = outcome  # the memory validates it
    if used and answer is not None:
        raise InvalidInput("pass either the useful notes or --answer")
    with options.memory() as memory:
        if answer is None:
            memory.feedback(search_id, used or [], checked_outcome)
        else:
            memory.feedback(search_id, None, checked_outcome, answer=answer)
            used = next((list(search.used or ()) for search in memory.searches() if search.id == search_id), [])
    if options.json:
        print_json({"search_id": search_id, "used": used or [], "outcome": outcome})
    else:
        echo(f"recorded: {len(used or [])} useful")
