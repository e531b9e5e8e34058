"""Verdicts of a judge model about answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from zettel.bench.evaluation import Progress
from zettel.core.bounded_gather import bounded_gather
from zettel.llm.lite import LiteLLM
from zettel.llm.prompt_lines import BYTES_PER_TOKEN
from zettel.model import Estimate

from .asking import Asker
from .records import AnswerRecord, Journal, Key, VerdictRecord, text_hash
from .requests import (
    EXPECTED_ANSWER,
    EXPECTED_VERDICT,
    JudgeKind,
    judge_prompt,
    parsed_verdict,
    request_tokens,
    score_of,
    verdict_requests,
    version_of,
)
from .run import VERDICTS, Run

BATCH = 64
"""Answers whose requests are in memory together."""
_EXPECTED_TEXT = "x" * (EXPECTED_ANSWER * BYTES_PER_TOKEN)


class Verdicts:
    """The verdicts of ``model`` about answers. Those in the folder of the run are not asked for again."""

    def __init__(self, run: Run, model: LiteLLM, judge: JudgeKind) -> None:
        self._run, self.model, self._judge = run, model, judge
        self._journal = Journal(run.folder / VERDICTS)
        self._known = {
            (record.key, record.prompt, record.answer_hash): record
            for record in self._journal.read(VerdictRecord)
            if record.model == model.name
        }

    def records(self, answers: Mapping[Key, AnswerRecord]) -> dict[Key, VerdictRecord]:
        """Return the verdicts about these answers so far."""
        found = {}
        for key, record in answers.items():
            if record.answer is not None and (verdict := self._known.get(self._key(key, record.answer))):
                found[key] = verdict
        return found

    def _key(self, key: Key, answer: str) -> tuple[Key, str, str]:
        prompt = judge_prompt(self._run.questions[key[0]], self._judge)
        return key, version_of(prompt), text_hash(answer)

    def estimate(self, keys: Iterable[Key], answers: Mapping[Key, AnswerRecord]) -> Estimate:
        """Return the estimated cost of the missing verdicts about the answers of ``keys``, given or still to come."""
        known = self.records(answers)
        calls = prompt_tokens = questions = 0
        for key in keys:
            if key not in known:
                text = answers[key].answer if key in answers else None
                requests = verdict_requests(self._run.questions[key[0]], text or _EXPECTED_TEXT, self._judge)
                questions += 1
                calls += len(requests)
                prompt_tokens += sum(map(request_tokens, requests))
        usd = self.model.price(prompt_tokens, calls * EXPECTED_VERDICT)
        return Estimate(self.model.name, questions, calls, prompt_tokens, calls * EXPECTED_VERDICT, usd)

    async def ask(self, answers: Mapping[Key, AnswerRecord], asker: Asker, progress: Progress) -> None:
        """Ask for the missing verdicts. Raises what ``Asker.ask`` raises."""
        known = self.records(answers)
        missing = [record for key, record in answers.items() if key not in known and record.answer is not None]
        done = 0

        async def judge(record: AnswerRecord) -> None:
            nonlocal done
            asked, answer = self._run.questions[record.id], record.answer or ""
            prompt = judge_prompt(asked, self._judge)
            labels, reasons = list[str](), list[str]()
            for request in verdict_requests(asked, answer, self._judge):
                verdict, _ = await asker.ask(request, partial(parsed_verdict, prompt))
                if verdict is None:
                    break
                labels.append(verdict[0])
                reasons.append(verdict[1])
            score = None if verdict is None else score_of(prompt, labels)
            key = self._key(record.key, answer)
            self._known[key] = VerdictRecord(
                id=record.id, system=record.system, score=score, model=self.model.name, prompt=key[1],
                answer_hash=key[2], labels=labels, reasons=reasons,
            )  # fmt: skip
            self._journal.append(self._known[key])
            done += 1
            progress("verdicts", done, len(missing))

        progress("verdicts", 0, len(missing))
        for start in range(0, len(missing), BATCH):
            await bounded_gather([partial(judge, record) for record in missing[start : start + BATCH]])
