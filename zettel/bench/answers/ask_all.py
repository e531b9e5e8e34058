"""Asks for all missing answers of a run, then for all missing verdicts, within one budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zettel.bench.evaluation import Progress
from zettel.llm.budget import Budget

from .answering import Answers
from .asking import Asker, opened_cache
from .judging import Verdicts
from .records import AnswerRecord, Key
from .run import CACHE, Run


async def ask_all(
    run: Run,
    answering: Answers | None,
    judging: Verdicts | None,
    answers: Mapping[Key, AnswerRecord],
    budget: Budget | None,
    progress: Progress,
) -> dict[str, Any]:
    """Ask for the missing answers, and for the missing verdicts about them or about ``answers``.

    Returns the cost, as ``stats`` of a memory does. Raises what ``Asker.ask`` raises.
    """
    askers: list[Asker] = []
    async with opened_cache(run.folder / CACHE) as store:
        if answering is not None:
            askers.append(Asker(store, answering.model, budget))
            await answering.ask(askers[-1], progress)
            answers = answering.records
            budget = budget and await askers[-1].budget_left(budget)
        if judging is not None:
            askers.append(Asker(store, judging.model, budget))
            await judging.ask(answers, askers[-1], progress)
    return {
        "llm_calls": sum(asker.calls for asker in askers),
        "llm_hits": sum(asker.hits for asker in askers),
        "llm_tokens": sum(asker.tokens for asker in askers),
        "llm_usd": sum(asker.usd for asker in askers),
    }
