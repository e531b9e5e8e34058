"""Options of the commands that select notes, and the conditions that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import typer

from .common import ROLE_HELP, key_values

AsOf: TypeAlias = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Search what was true at this time.")
]
KnownAt: TypeAlias = Annotated[
    str | None, typer.Option("--known-at", metavar="TIME", help="Search what had been recorded by this time.")
]
Since: TypeAlias = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Events at this time or later.")]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Events before this time.")]
Now: TypeAlias = Annotated[
    str | None, typer.Option("--now", metavar="TIME", help="Reference time for words such as 'yesterday'.")
]
Kinds: TypeAlias = Annotated[
    list[str] | None, typer.Option("--kind", help="episodic, semantic, procedural or insight; repeatable.")
]
Tags: TypeAlias = Annotated[list[str] | None, typer.Option("--tag", help="Notes with this tag; repeatable.")]
Session: TypeAlias = Annotated[str | None, typer.Option("--session", help="Notes of this session.")]
Speaker: TypeAlias = Annotated[str | None, typer.Option("--speaker", help="Notes of this speaker.")]
SpokenAs: TypeAlias = Annotated[str | None, typer.Option("--role", help=ROLE_HELP)]
Meta: TypeAlias = Annotated[
    list[str] | None, typer.Option("--meta", metavar="NAME=VALUE", help="Notes with this metadata; repeatable.")
]
FilterJson: TypeAlias = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help='Conditions with operators, such as \'{"price": {"gte": 3}}\'.'),
]
MinScore: TypeAlias = Annotated[
    float | None, typer.Option("--min-score", min=0, max=1, help="Leave out hits with a lower score (0 to 1).")
]
MinTrust: TypeAlias = Annotated[
    float | None, typer.Option("--min-trust", min=0, max=1, help="Leave out hits of less trust (0 to 1).")
]
Current: TypeAlias = Annotated[bool, typer.Option("--current", help="Leave out outdated notes.")]
Archived: TypeAlias = Annotated[bool, typer.Option("--archived", help="Search archived notes too.")]
Quarantined: TypeAlias = Annotated[bool, typer.Option("--quarantined", help="Search quarantined notes too.")]


def conditions(meta: Sequence[str] | None, filter: str | None) -> dict[str, Any] | None:
    """Return the conditions of ``--meta`` and ``--filter``; None without any. Raises ``InvalidInput``."""
    pairs = key_values(meta, "--meta")
    if filter is None:
        return pairs or None
    from zettel.core.conditions import filter_from_json

    parsed = filter_from_json("--filter", filter)
    return {"and": [pairs, parsed]} if pairs else parsed
