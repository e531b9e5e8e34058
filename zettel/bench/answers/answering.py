"""Answers of a model to the questions of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from zettel.bench.evaluation import Progress
from zettel.core.bounded_gather import bounded_gather
from zettel.llm.lite import LiteLLM
from zettel.model import Estimate

from .asking import Asker
from .contexts import FULL, rendered
from .datasets import Asked, Conversation
from .records import AnswerRecord, ContextRecord, Journal, Key
from .requests import (
    ANSWER_PROMPT,
    EXPECTED_ANSWER,
    MAX_TOKENS,
    answer_request,
    parsed_answer,
    request_tokens,
    version_of,
)
from .run import ANSWERS, Run

MARGIN = 1.1
"""Factor for the tokens of a context, because tokenizers count more or fewer than the estimate."""


def without_long(
    contexts: Mapping[Key, ContextRecord], model: str, window: int | None
) -> tuple[dict[Key, ContextRecord], list[str]]:
    """Return the contexts that fit into the window of a model, and a line about those that do not.

    If the window is unknown, full texts are left out.
    """
    fitting, remarks = dict(contexts), []
    for system in dict.fromkeys(system for _, system in contexts):
        of_system = [record for record in contexts.values() if record.system == system]
        if window is None:
            long = of_system if system == FULL else []
            reason = f"LiteLLM does not know how many tokens {model} reads: pass --window TOKENS"
        else:
            long = [record for record in of_system if math.ceil(record.tokens * MARGIN) + MAX_TOKENS > window]
            reason = f"{model} reads {window:,} tokens, of which {MAX_TOKENS:,} are reserved for the answer"
        for record in long:
            del fitting[record.key]
        if long:
            most = max(record.tokens for record in long)
            remarks.append(
                f"{system}: {len(long)} of {len(of_system)} contexts (up to {most:,} tokens) are left out: {reason}."
            )
    return fitting, remarks


class Answers:
    """The answers of ``model`` from ``contexts``. Those in the folder of the run are not asked for again."""

    def __init__(self, run: Run, contexts: Mapping[Key, ContextRecord], model: LiteLLM) -> None:
        self._run, self._contexts, self.model = run, contexts, model
        self._prompt = version_of(ANSWER_PROMPT)
        self._journal = Journal(run.folder / ANSWERS)
        self.records = {
            record.key: record for record in self._journal.read(AnswerRecord) if self._is_current(record)
        }

    @property
    def keys(self) -> list[Key]:
        """The keys of all contexts."""
        return list(self._contexts)

    @property
    def missing(self) -> list[Key]:
        """The keys of contexts without an answer; one that is not usable was asked for several times."""
        return [key for key in self._contexts if key not in self.records]

    def _is_current(self, record: AnswerRecord) -> bool:
        context = self._contexts.get(record.key)
        made_by = record.model, record.prompt, record.context_hash
        return context is not None and made_by == (self.model.name, self._prompt, context.context_hash)

    def estimate(self) -> Estimate:
        """Return the estimated cost of the missing answers."""
        missing = self.missing
        requests = [answer_request(self._run.questions[id], "") for id, _ in missing]
        prompt_tokens = sum(map(request_tokens, requests)) + sum(self._contexts[key].tokens for key in missing)
        answer_tokens = len(missing) * EXPECTED_ANSWER
        usd = self.model.price(prompt_tokens, answer_tokens)
        return Estimate(self.model.name, len(missing), len(missing), prompt_tokens, answer_tokens, usd)

    async def ask(self, asker: Asker, progress: Progress) -> None:
        """Ask for the missing answers. Raises what ``Asker.ask`` raises."""
        missing = self.missing
        total, done = len(missing), 0

        async def answer(conversation: Conversation, asked: Asked, system: str) -> None:
            nonlocal done
            context = self._contexts[asked.id, system]
            text = rendered(conversation.events[: asked.after]) if context.context is None else context.context
            value, seconds = await asker.ask(answer_request(asked, text), parsed_answer)
            record = AnswerRecord(
                **context.model_dump(include={"id", "system", "tokens", "seconds", "context_hash"}),
                answer=value, model=self.model.name, prompt=self._prompt,
                answer_seconds=None if seconds is None else round(seconds, 3),
            )  # fmt: skip
            self._journal.append(record, question=asked.text, kind=asked.kind, reference=asked.reference)
            self.records[record.key] = record
            done += 1
            progress("answers", done, total)

        progress("answers", 0, total)
        for conversation in self._run.conversations({id for id, _ in missing}):
            questions = {each.id: each for each in conversation.questions}
            await bounded_gather(
                [partial(answer, conversation, questions[id], system) for id, system in missing if id in questions]
            )
