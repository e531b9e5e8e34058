"""The commands ``zettel bench`` for the benchmarks of others that compare retrieval with simple systems."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal, TypeAlias

import typer

from .bench_options import Ablate, Plot, Scorers, Without, baseline_names, require_complete_scorer, separated
from .benchmark_output import JsonFile, measure, require_drawable, require_readable
from .common import Common, common

Places: TypeAlias = Annotated[
    list[int] | None, typer.Option("-k", "--k", min=1, help="Number of hits to evaluate; repeatable.")
]
Baselines: TypeAlias = Annotated[
    str,
    typer.Option(
        "--beside", metavar="SYSTEMS",
        help="Baselines beside zettel: bm25, vectors, rrf, minilm, amem; several with commas, or none.",
    ),
]  # fmt: skip
BESIDE = "bm25,vectors,rrf"


def longmemeval(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="longmemeval_s_cleaned.json, or another file of LongMemEval."),
    turns: Literal["user", "all"] = typer.Option(
        "user", "--turns", help="Store the user's turns, as the authors do, or also the assistant's."
    ),
    k: Places = None,
    scorer: Scorers = None,
    beside: Baselines = BESIDE,
    json: JsonFile = None,
) -> None:
    """Measure on LongMemEval how well searches find evidence sessions and turns, beside baselines.

    Abstention questions and questions without a stored evidence turn are skipped. -k is 5 and 10 by default.

    \b
    Examples:
      zettel bench longmemeval longmemeval_s_cleaned.json --json longmemeval-s.json
      zettel bench longmemeval longmemeval_s_cleaned.json --turns all -k 1 -k 5 -k 10 -k 50
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import longmemeval as benchmark

    _compare(benchmark, path, options, k, scorer, beside, json, turns)


def multihop(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="The passages (NAME_corpus.json), or a folder with both files."),
    questions: Path | None = typer.Argument(None, metavar="QUESTIONS", help="The questions; by default beside PATH."),
    k: Places = None,
    without: Without = "",
    ablate: Ablate = False,
    scorer: Scorers = None,
    beside: Baselines = BESIDE,
    plot: Plot = None,
    json: JsonFile = None,
) -> None:
    """Measure on MuSiQue, HotpotQA or 2Wiki how often one search finds all needed passages, beside baselines.

    The files have the layout of HippoRAG, or are JSON lines: docs/benchmarks.md describes both. -k is 2, 5 and 8 by
    default.

    \b
    Examples:
      zettel bench multihop musique_corpus.json
      zettel bench multihop hotpotqa_corpus.json hotpotqa.json -k 5 --without walk
      zettel bench multihop data/ --ablate --beside bm25,vectors
    """
    options = common(ctx)
    require_readable(path, json, folder=True)
    require_drawable(plot)
    require_complete_scorer(without, ablate, scorer)
    from zettel.bench import multihop as benchmark

    measure(
        lambda progress: benchmark.run(
            path, progress, questions, sorted(set(k or benchmark.KS)), separated(without), options.embedder,
            ablate=ablate, baselines=baseline_names(beside), scorers=scorer or (),
        ),
        options, json, plot,
    )  # fmt: skip


def personamem(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="benchmark.csv of PersonaMem-v2, in the folder of the data set."),
    size: Literal["32k", "128k"] = typer.Option("32k", "--size", help="Length of the chat histories in tokens."),
    k: Places = None,
    scorer: Scorers = None,
    beside: Baselines = BESIDE,
    json: JsonFile = None,
) -> None:
    """Measure on PersonaMem-v2 how well searches find the messages that reveal a preference, beside baselines.

    -k is 1, 5 and 10 by default.

    \b
    Examples:
      zettel bench personamem PersonaMem-v2/benchmark/text/benchmark.csv
      zettel bench personamem PersonaMem-v2/benchmark/text/benchmark.csv --size 128k --json personamem.json
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import personamem as benchmark

    _compare(benchmark, path, options, k, scorer, beside, json, size)


def memoryagentbench(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="MemoryAgentBench's conflict resolution: Parquet or JSON lines."),
    k: Places = None,
    scorer: Scorers = None,
    beside: Baselines = BESIDE,
    json: JsonFile = None,
) -> None:
    """Measure on MemoryAgentBench whether searches find the newest version of a fact, beside baselines.

    -k is 1, 5 and 10 by default. Parquet requires zettel-graph[parquet].

    \b
    Examples:
      zettel bench memoryagentbench data/Conflict_Resolution-00000-of-00001.parquet
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import memoryagentbench as benchmark

    _compare(benchmark, path, options, k, scorer, beside, json)


def halumem(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="HaluMem-Medium.jsonl or HaluMem-Long.jsonl."),
    events: Literal["dialogue", "points"] = typer.Option(
        "dialogue", "--events", help="Store the dialogues, or the labelled memory points as a perfect extraction."
    ),
    k: Places = None,
    scorer: Scorers = None,
    beside: Baselines = BESIDE,
    json: JsonFile = None,
) -> None:
    """Measure on HaluMem how well searches find evidence, and new facts before outdated ones, beside baselines.

    No model is called; `zettel bench answers halumem` measures answers with a judge model. -k is 1, 5 and 10 by
    default.

    \b
    Examples:
      zettel bench halumem HaluMem-Medium.jsonl
      zettel bench halumem HaluMem-Medium.jsonl --events points --json halumem-points.json
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import halumem as benchmark

    _compare(benchmark, path, options, k, scorer, beside, json, events)


def _compare(
    benchmark: ModuleType,
    path: Path,
    options: Common,
    k: list[int] | None,
    scorers: list[str] | None,
    beside: str,
    json: JsonFile,
    *choices: str,
) -> None:
    """Run a benchmark with these choices of its own beside baselines, and print or write its result."""
    measure(
        lambda progress: benchmark.run(
            path, progress, sorted(set(k or benchmark.KS)), *choices, options.embedder,
            baselines=baseline_names(beside), scorers=scorers or (),
        ),
        options, json,
    )  # fmt: skip
