"""Asking a memory: search and context, and telling it what was of use."""

from __future__ import annotations

from typing import Any

import typer

from zettel.errors import InvalidInput

from .common import common, console, key_values, remark, say, say_json

_SCORER_HELP = "Who ranks: fusion, decoder, cross-encoder, llm (asks the model of --llm), or one that is installed."
_EFFORT_HELP = "How much ranking may take: low, mid or high."


def search(
    ctx: typer.Context,
    question: str = typer.Argument(metavar="QUESTION", help="What to ask."),
    k: int = typer.Option(10, "-k", "--k", help="How many notes."),
    explain: bool = typer.Option(False, "--explain", "-e", help="Say how each hit came about."),
    as_of: str | None = typer.Option(None, "--as-of", metavar="TIME", help="What was true then."),
    known_at: str | None = typer.Option(None, "--known-at", metavar="TIME", help="What had been recorded by then."),
    since: str | None = typer.Option(None, "--since", metavar="TIME", help="Happened then or later."),
    until: str | None = typer.Option(None, "--until", metavar="TIME", help="Happened before."),
    now: str | None = typer.Option(None, "--now", metavar="TIME", help="What 'yesterday' counts from."),
    kind: list[str] = typer.Option([], "--kind", help="episodic, semantic, procedural or insight; repeatable."),
    tag: list[str] = typer.Option([], "--tag", help="Notes with this tag; repeatable."),
    session: str | None = typer.Option(None, "--session", help="Notes of this session."),
    role: str | None = typer.Option(None, "--role", help="Notes of this speaker."),
    meta: list[str] = typer.Option([], "--meta", metavar="NAME=VALUE", help="Notes with this metadata; repeatable."),
    min_score: float | None = typer.Option(
        None, "--min-score", min=0, max=1, help="Leave out what scores less, 0 to 1."
    ),
    current: bool = typer.Option(False, "--current", help="Leave out what was replaced since."),
    archived: bool = typer.Option(False, "--archived", help="Search what was put away too."),
    quarantined: bool = typer.Option(False, "--quarantined", help="Search what is in quarantine too."),
    scorer: str | None = typer.Option(None, "--scorer", metavar="NAME", help=_SCORER_HELP),
    effort: str | None = typer.Option(None, "--effort", metavar="EFFORT", help=_EFFORT_HELP),
) -> None:
    """Find the notes that answer a question.

    \b
    Examples:
      zettel search "Where does Ann live?"
      zettel search "What did we decide?" -k 3 --explain
      zettel search "Where does Ann live?" --as-of 2024-01-31 --json
      zettel search "Where does Ann live?" --current
      zettel search "What became of the boat?" --archived
      zettel search "Where does Ann live?" --effort high
    """
    options = common(ctx)
    level: Any = effort  # what it may be, the memory knows
    with options.memory() as memory:
        hits = memory.search(
            question, k=k, as_of=as_of, known_at=known_at, since=since, until=until, now=now,
            kinds=kind or None, tags=tag or None, session=session, role=role,
            filter=key_values(meta, "--meta") or None, min_score=min_score, current_only=current,
            archived=archived, quarantined=quarantined, scorer=scorer, effort=level,
            explain=explain,
        )  # fmt: skip
    if options.json:
        say_json(hits)
    elif not hits:
        remark("zettel: nothing was found")
    else:
        from .hits import show_hits

        show_hits(console(), hits, explained=k if explain else 0)
        for ranked in {hit.why.scorer for hit in hits if "(not " in hit.why.scorer}:
            remark(f"zettel: ranked by {ranked}")


def context(
    ctx: typer.Context,
    question: str = typer.Argument(metavar="QUESTION", help="What to ask."),
    max_tokens: int = typer.Option(800, "--max-tokens", help="How long the text may be."),
    as_of: str | None = typer.Option(None, "--as-of", metavar="TIME", help="What was true then."),
    profile: bool = typer.Option(False, "--profile", help="Open with what lasts of the people who speak."),
    rounds: int | None = typer.Option(
        None, "--rounds", metavar="N", help="Search up to N times for what the model of --llm still misses."
    ),
    scorer: str | None = typer.Option(None, "--scorer", metavar="NAME", help=_SCORER_HELP),
    effort: str | None = typer.Option(None, "--effort", metavar="EFFORT", help=_EFFORT_HELP),
) -> None:
    """What search finds, packed for a prompt.

    \b
    Examples:
      zettel context "Where does Ann live?" --max-tokens 400
      zettel context "What would Ann like?" --profile
      zettel context "Where was the dog of Ann's sister born?" --rounds 3 --llm openai/gpt-4o-mini
    """
    options = common(ctx)
    if rounds is not None and profile:
        raise InvalidInput("--profile opens what one search finds: do without --rounds")
    how: dict[str, Any] = {"max_tokens": max_tokens, "as_of": as_of, "scorer": scorer, "effort": effort}
    with options.memory() as memory:
        if rounds is None:
            text = memory.context(question, profile=profile, **how)
            gathered = None
        else:
            gathered = memory.answer_context(question, rounds, **how)
            text = gathered.text
    if options.json:
        say_json({"context": text} if gathered is None else gathered)
        return
    say(text)
    if gathered is not None:
        made = "1 round" if gathered.rounds == 1 else f"{gathered.rounds} rounds"
        remark(f"zettel: {made} of searches: {gathered.ended}")
        for need in gathered.missing:
            remark(f"zettel: still missing: {need}")


def feedback(
    ctx: typer.Context,
    search_id: str = typer.Argument(metavar="SEARCH", help="The search_id of its hits, as search --json shows it."),
    used: list[str] = typer.Argument(None, metavar="[ID]...", help="The notes that were of use; none: nothing was."),
    outcome: str | None = typer.Option(None, "--outcome", help="How it ended: success or failure."),
) -> None:
    """Tell which notes of a search were of use. They fade later than others. Told again, the last word counts.

    \b
    Examples:
      zettel feedback s_7c21… n_3f9a…
      zettel feedback s_7c21… n_3f9a… n_b5d0… --outcome success
    """
    options = common(ctx)
    told: Any = outcome  # what it may be, the memory knows
    with options.memory() as memory:
        memory.feedback(search_id, used or [], told)
    if options.json:
        say_json({"search_id": search_id, "used": used or [], "outcome": outcome})
    else:
        say(f"noted: {len(used or [])} of use")
