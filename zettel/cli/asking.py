"""Asking a memory: search and context."""

from __future__ import annotations

import typer

from .common import common, console, key_values, remark, say, say_json


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
) -> None:
    """Find the notes that answer a question.

    \b
    Examples:
      zettel search "Where does Ann live?"
      zettel search "What did we decide?" -k 3 --explain
      zettel search "Where does Ann live?" --as-of 2024-01-31 --json
      zettel search "Where does Ann live?" --current
    """
    options = common(ctx)
    with options.memory() as memory:
        hits = memory.search(
            question, k=k, as_of=as_of, known_at=known_at, since=since, until=until, now=now,
            kinds=kind or None, tags=tag or None, session=session, role=role,
            filter=key_values(meta, "--meta") or None, min_score=min_score, current_only=current,
            explain=explain,
        )  # fmt: skip
    if options.json:
        say_json(hits)
    elif not hits:
        remark("zettel: nothing was found")
    else:
        from .hits import show_hits

        show_hits(console(), hits, explained=k if explain else 0)


def context(
    ctx: typer.Context,
    question: str = typer.Argument(metavar="QUESTION", help="What to ask."),
    max_tokens: int = typer.Option(800, "--max-tokens", help="How long the text may be."),
    as_of: str | None = typer.Option(None, "--as-of", metavar="TIME", help="What was true then."),
) -> None:
    """What search finds, packed for a prompt.

    \b
    Example:
      zettel context "Where does Ann live?" --max-tokens 400
    """
    options = common(ctx)
    with options.memory() as memory:
        text = memory.context(question, max_tokens=max_tokens, as_of=as_of)
    if options.json:
        say_json({"context": text})
    else:
        say(text)
