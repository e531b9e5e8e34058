"""The questions of a run and its folder of records, which let an interrupted run continue."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from zettel.bench.evaluation import Progress
from zettel.bench.results import checkout_commit
from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.llm.prompt_lines import day
from zettel.version import VERSION

from . import datasets
from .contexts import FULL, Built, SharedTexts, contexts
from .datasets import Conversation
from .records import ContextRecord, Journal, Key, text_hash

SETTINGS, CONTEXTS, ANSWERS, VERDICTS, CACHE = (
    "run.json", "contexts.jsonl", "answers.jsonl", "verdicts.jsonl", "models.db",
)  # fmt: skip
"""The files of a run."""
DIGITS = 6  # of seconds


class Run:
    """The questions of a data set, and the folder with the records about them.

    ``count`` limits the questions. Raises ``InvalidInput`` for an unknown data set and a file without questions,
    ``BadRecord`` for a damaged file.
    """

    def __init__(self, dataset: str, path: Path, folder: Path, count: int | None = None) -> None:
        self.dataset, self.path, self.folder = dataset, path, folder
        self.skipped: datasets.Skipped = Counter()
        everything = [each for talk in datasets.read(dataset, path, self.skipped) for each in talk.questions]
        if not everything:
            raise InvalidInput(f"{path} has no question with a reference answer: pass the authors' file of {dataset}")
        self.digest = datasets.digest(everything)
        self.questions = {each.id: each for each in datasets.spread(everything, count)}
        if len(self.questions) < min(count or len(everything), len(everything)):
            raise BadRecord(f"{path} has two questions with the same id")

    def conversations(self, ids: Iterable[str]) -> Iterator[Conversation]:
        """Yield the conversations that have one of these questions, with these alone."""
        yield from datasets.selected(datasets.read(self.dataset, self.path, Counter()), frozenset(ids))

    def open_folder(self) -> None:
        """Create the folder of the records. Raises ``InvalidInput`` if that is a file."""
        if self.folder.is_file():
            raise InvalidInput(f"{self.folder} is a file: name a folder with --out")
        self.folder.mkdir(parents=True, exist_ok=True)

    def require_settings(self, settings: dict[str, Any]) -> None:
        """Record the settings of the contexts. Raises ``InvalidInput`` if the folder has contexts of other settings."""
        settings = {"dataset": self.dataset, "data": self.digest, **settings}
        file = self.folder / SETTINGS
        if not file.exists():
            file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            return
        try:
            earlier = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            raise BadRecord(f"{file} is damaged: name another folder with --out") from None
        for name, value in settings.items():
            if earlier.get(name) != value:
                raise InvalidInput(
                    f"{self.folder} has contexts with {name} {earlier.get(name)!r} instead of {value!r}: name another "
                    "folder with --out"
                )


class Contexts:
    """Builds the contexts of a run by each of ``systems``."""

    def __init__(self, run: Run, systems: Sequence[str], max_tokens: int, embedder: str | None) -> None:
        self._run, self._systems, self._max_tokens = run, systems, max_tokens
        self._embedder = SharedTexts(load_embedder(embedder))
        self._wanted = [(id, system) for id in run.questions for system in systems]

    async def build(self, progress: Progress) -> dict[Key, ContextRecord]:
        """Return the context of each question by each system; those in the folder are not built again."""
        self._run.require_settings(
            {
                "max_tokens": self._max_tokens,
                "embedder": self._embedder.info.name,
                "zettel": VERSION,
                "commit": checkout_commit(),
            }
        )
        journal = Journal(self._run.folder / CONTEXTS)
        records = {record.key: record for record in journal.read(ContextRecord)}
        async with aclosing(self._built(records, progress)) as built_contexts:
            async for built in built_contexts:
                record = _record(built)
                journal.append(record)
                records[record.key] = record
        return {key: records[key] for key in self._wanted}

    async def write(self, file: Path, progress: Progress) -> int:
        """Write the contexts of all questions to a file, with full texts, and return their number."""
        journal, count = Journal(file, is_new=True), 0
        async with aclosing(self._built({}, progress)) as built_contexts:
            async for built in built_contexts:
                asked = built.question
                record = _record(built).model_copy(update={"context": built.text})
                journal.append(record, question=asked.text, kind=asked.kind, today=day(asked.today))
                count += 1
        return count

    async def _built(self, known: Iterable[Key], progress: Progress) -> AsyncGenerator[Built, None]:
        missing = set(self._wanted).difference(known)
        for conversation in self._run.conversations({id for id, _ in missing}):
            ids = {each.id for each in conversation.questions}
            systems = [system for system in self._systems if any((id, system) in missing for id in ids)]
            building = contexts(conversation, systems, self._max_tokens, self._embedder, progress)
            async with aclosing(building):
                async for built in building:
                    if (built.question.id, built.system) in missing:
                        yield built


def _record(built: Built) -> ContextRecord:
    return ContextRecord(
        id=built.question.id,
        system=built.system,
        tokens=built.tokens,
        seconds=round(built.seconds, DIGITS),
        context_hash=text_hash(built.text),
        context=None if built.system == FULL else built.text,  # the same text for many questions, and long
    )
