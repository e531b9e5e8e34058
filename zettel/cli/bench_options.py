"""The options that several commands ``zettel bench`` share, and their checks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from zettel.errors import InvalidInput

PLOT_HELP = "Draw the result into FOLDER, as SVG."
NOTES_HELP = "Recorded notes of a model about the turns of the conversation, as JSON lines."
K_HELP = "Number of hits to evaluate"

LoCoMoFile: TypeAlias = Annotated[Path, typer.Argument(metavar="PATH", help="LoCoMo's JSON file.")]
Conversations: TypeAlias = Annotated[
    list[str] | None, typer.Option("--conversation", metavar="N", help="Only this conversation; repeatable.")
]
K: TypeAlias = Annotated[int, typer.Option("-k", "--k", min=1, help=f"{K_HELP}.")]
Without: TypeAlias = Annotated[
    str,
    typer.Option(
        "--without", metavar="PARTS",
        help="Parts of the scorer to leave out: text, vector, windows, role, length, speaker, time, form, walk, terms, "
        "statements; several with commas.",
    ),
]  # fmt: skip
Ablate: TypeAlias = Annotated[bool, typer.Option("--ablate", help="Also leave out each part of the scorer in turn.")]
Scorers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--scorer", metavar="NAME", help="Also measure this scorer: decoder, cross-encoder, …; repeatable."),
]
Beside: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--beside", metavar="SYSTEMS",
        help="Baselines beside zettel: bm25, vectors, rrf, minilm, amem; several with commas, or none. [default: all]",
    ),
]  # fmt: skip
Plot: TypeAlias = Annotated[Path | None, typer.Option("--plot", metavar="FOLDER", help=PLOT_HELP)]
ServerFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--server", metavar="FOLDER", help="Folder of `zettel neo4j up`: also measure the server's processor time."
    ),
]
Sizes: TypeAlias = Annotated[
    str, typer.Option("--notes", metavar="SIZES", help="Sizes of the made-up scopes in notes; several with commas.")
]


def require_complete_scorer(without: str, ablate: bool, scorers: list[str] | None) -> None:
    """Check that the options of a comparison fit together. Raises ``InvalidInput``."""
    if without and ablate:
        raise InvalidInput("--ablate leaves out each part in turn: pass --ablate or --without, not both")
    if without and scorers:
        raise InvalidInput("--scorer reranks the hits of the complete default scorer: leave --without out")


def baseline_names(names: str | None) -> tuple[str, ...]:
    """Return the names of ``--beside``, which are separated with commas; all without the option."""
    from zettel.bench.baselines import ALL

    return ALL if names is None else () if names == "none" else separated(names)


def whole_numbers(text: str, option: str = "--notes") -> list[int]:
    """Return the whole numbers of a text between commas. Raises ``InvalidInput``."""
    try:
        return [int(part) for part in separated(text)]
    except ValueError:
        raise InvalidInput(f"{option} {text!r}: expected whole numbers with commas, such as 10000,100000") from None


def separated(text: str) -> tuple[str, ...]:
    """Return the parts of a text between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
