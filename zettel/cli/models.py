"""What language models cost and hold up, as people are told it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput

from .common import Common, remark

if TYPE_CHECKING:
    from zettel.llm.estimate import Estimate
    from zettel.model import Job
    from zettel.transcripts.report import ImportReport

SIGNIFICANT = 2
"""Digits of an estimate that mean something."""
CENT = 0.01
"""US dollars below which a price is only told to be small."""


def agreed(options: Common, file: Path, format: str, wanted: Mapping[str, Any], yes: bool) -> bool:
    """Whether the model may be asked for an import, after it was said what that costs; nothing was stored yet.

    ``wanted`` are the arguments of ``Memory.estimate_import`` about what is to be imported.
    Raises ``InvalidInput`` where nobody can be asked.
    """
    there = "://" in options.store or Path(options.store).exists()
    looked_at = options if there else replace(options, store=":memory:")
    with looked_at.memory(create=True) as memory:
        estimate = memory.estimate_import(file, format, **wanted)
    if not estimate.calls:
        return True
    told = estimated(estimate) + (f", within the budget {options.budget}" if options.budget else "")
    if not yes and not sys.stdin.isatty():
        raise InvalidInput(f"{told}, and nobody can be asked here whether it may: --yes says so")
    remark(told)
    return yes or typer.confirm("Go on?", err=True)


def estimated(estimate: Estimate) -> str:
    """An estimate in one line."""
    tokens = round(estimate.tokens, SIGNIFICANT - len(str(estimate.tokens)))
    price = "price not known" if estimate.usd is None else in_usd(estimate.usd)
    times = "once" if estimate.calls == 1 else f"{estimate.calls:,} times"
    return f"{estimate.model} will be asked about {times}, about {tokens:,} tokens, {price}"


def in_usd(usd: float) -> str:
    """A sum of money."""
    return f"less than {CENT} USD" if 0 < usd < CENT else f"{usd:,.2f} USD"


def used(counts: Mapping[str, Any]) -> str | None:
    """What a model was asked and what that cost; None if it was not. Money is left out where no price was known."""
    calls, hits = counts.get("llm_calls", 0), counts.get("llm_hits", 0)
    if not calls and not hits:
        return None
    parts = ["1 call" if calls == 1 else f"{calls:,} calls", f"{counts['llm_tokens']:,} tokens"]
    parts += [in_usd(counts["llm_usd"])] if counts["llm_usd"] else []
    parts += [f"{hits:,} answered from what was kept"] if hits else []
    return ", ".join(parts)


def count_use(report: ImportReport, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Put what a model has cost between two looks into a report."""
    for name in ("llm_calls", "llm_hits", "llm_tokens"):
        setattr(report, name, after.get(name, 0) - before.get(name, 0))
    report.llm_usd = round(after.get("llm_usd", 0.0) - before.get("llm_usd", 0.0), 6)


def budget_left(left: Mapping[str, float]) -> str:
    """What is left of a budget."""
    return ", ".join(in_usd(value) if name == "usd" else f"{value:,.0f} {name}" for name, value in left.items())


def waiting(jobs: Sequence[Job], models: Sequence[str]) -> str | None:
    """One line about jobs that wait for a model: until one is named, or for what is in the way of the named one."""
    queued = [job for job in jobs if job.state.value == "queued"]
    if not models:
        count = sum(job.kind.value == "annotate" for job in queued)
        wait = "1 annotate job waits" if count == 1 else f"{count:,} annotate jobs wait"
        return f"{wait} for a model: --llm NAME" if count else None
    held = [job for job in queued if job.kind.value in ("annotate", "link") and job.error]
    if not held:
        return None
    wait = "1 job waits" if len(held) == 1 else f"{len(held):,} jobs wait"
    return f"{wait}, the first with: {held[0].error}"
