"""The command ``zettel bench peers``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .bench_options import baseline_names
from .benchmark_output import JsonFile, measure, require_result_writable
from .common import common

if TYPE_CHECKING:
    from zettel.bench.results import Result


def peers(
    ctx: typer.Context,
    data: list[str] = typer.Argument(
        metavar="PATH", help="A chat, a conversation or a folder of chats; NAME=PATH[,PATH] names its column."
    ),
    environments: Path = typer.Option(
        ..., "--environments", metavar="FOLDER", help="Folder for the peers' environments; present ones are reused."
    ),
    peer: list[str] | None = typer.Option(
        None, "--peer", metavar="NAME",
        help="Only this peer beside zettel: zettel-texts (without the other fields), chroma, langgraph, mem0, "
        "llama-index, txtai, langmem, graphiti, cognee; repeatable.",
    ),
    beside: str = typer.Option(
        "bm25,vectors,rrf,amem", "--beside", metavar="SYSTEMS", help="Baselines; several with commas, or none."
    ),
    json: JsonFile = None,
) -> None:  # fmt: skip
    """Measure other memories beside zettel, without a language model: recall, speed, size, kill -9, deletes.

    Each peer gets an environment of its own by uv, with its newest release: txtai needs 6 GB. To update a peer, delete
    its folder. After the installation no peer uses the network. --json contains the systems measured so far.

    \b
    Examples:
      zettel bench peers locomo10.json --environments peers
      zettel bench peers locomo=locomo10.json chats=tests/data/chats --environments peers --json peers.json
      zettel bench peers tests/data/chats/home-server.json --environments peers --peer chroma --peer mem0
    """
    options = common(ctx)
    require_result_writable(json)
    if environments.is_file():
        raise typer.BadParameter(f"{environments} is a file: name a folder", param_hint="--environments")
    from zettel.bench.peers import measure as bench

    def save(result: Result) -> None:
        if json not in (None, "-"):
            result.write(Path(json))

    beside_names = baseline_names(beside)
    measure(lambda progress: bench.run(data, environments, progress, peer or (), beside_names, save), options, json)
