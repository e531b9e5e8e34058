"""Estimated and actual cost of language models, and the jobs that wait for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .common import Common, notify, require_consent

if TYPE_CHECKING:
    from zettel.model import Estimate, Job
    from zettel.transcripts.report import ImportReport

SIGNIFICANT = 2
"""Significant digits of an estimate."""
CENT = 0.01
"""US dollars; smaller prices are printed as "less than"."""


def confirm_cost(options: Common, file: Path, format: str, selection: Mapping[str, Any], yes: bool) -> bool:
    """Print the estimated cost of an import and ask for consent before anything is stored.

    ``selection`` are further arguments of ``Memory.estimate_import``. Exits with 1 if stdin is not a
    terminal and ``yes`` is False.
    """
    exists = "://" in options.store or Path(options.store).exists()
    estimated_in = options if exists else replace(options, store=":memory:")
    with estimated_in.memory(create=True) as memory:
        estimate = memory.estimate_import(file, format, **selection)
    if not estimate.calls:
        return True
    return consent(estimated(estimate) + (f", within the budget {options.budget}" if options.budget else ""), yes)


def consent(cost: str, yes: bool) -> bool:
    """Print a cost and ask for consent; return the answer, True with ``yes``.

    Exits with 1 if stdin is not a terminal and ``yes`` is False.
    """
    require_consent(yes, cost)
    notify(cost)
    return yes or typer.confirm("Continue?", err=True)


def estimated(estimate: Estimate) -> str:
    """Return an estimate on one line."""
    tokens = round(estimate.tokens, SIGNIFICANT - len(str(estimate.tokens)))
    price = "price not known" if estimate.usd is None else in_usd(estimate.usd)
    calls = "1 call" if estimate.calls == 1 else f"{estimate.calls:,} calls"
    return f"about {calls} to {estimate.model}, about {tokens:,} tokens, {price}"


def in_usd(usd: float) -> str:
    """Return an amount in US dollars."""
    return f"less than {CENT} USD" if 0 < usd < CENT else f"{usd:,.2f} USD"


def used(counts: Mapping[str, Any]) -> str | None:
    """Return the calls, tokens and cost of a model; None without calls. An unknown price is left out."""
    calls, hits = counts.get("llm_calls", 0), counts.get("llm_hits", 0)
    if not calls and not hits:
        return None
    parts = ["1 call" if calls == 1 else f"{calls:,} calls", f"{counts['llm_tokens']:,} tokens"]
    parts += [in_usd(counts["llm_usd"])] if counts["llm_usd"] else []
    parts += [f"{hits:,} answered from the cache"] if hits else []
    return ", ".join(parts)


def count_use(report: ImportReport, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Add the model use between two calls of ``stats`` to a report."""
    for name in ("llm_calls", "llm_hits", "llm_tokens"):
        setattr(report, name, after.get(name, 0) - before.get(name, 0))
    report.llm_usd = round(after.get("llm_usd", 0.0) - before.get("llm_usd", 0.0), 6)


def budget_left(limits: Mapping[str, float]) -> str:
    """Return the rest of a budget."""
    return ", ".join(in_usd(value) if name == "usd" else f"{value:,.0f} {name}" for name, value in limits.items())


def waiting(jobs: Sequence[Job], models: Sequence[str]) -> str | None:
    """Return one line about jobs that wait for a model, with the reason; None if there are none."""
    queued = [job for job in jobs if job.state.value == "queued"]
    if not models:
        count = sum(job.kind.value == "annotate" for job in queued)
        wait = "1 annotate job waits" if count == 1 else f"{count:,} annotate jobs wait"
        return f"{wait} for a language model: pass --llm NAME" if count else None
    delayed = [job for job in queued if job.kind.value in ("annotate", "link") and job.error]
    if not delayed:
        return None
    wait = "1 job waits" if len(delayed) == 1 else f"{len(delayed):,} jobs wait"
    return f"{wait}, the first with the error: {delayed[0].error}"
