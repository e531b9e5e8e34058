"""Questions over several documents: recall of all passages that a question needs.

Reads three benchmarks in the layout of HippoRAG's repository (``osunlp/HippoRAG_2`` on Hugging Face): the passages in
``NAME_corpus.json``, a list of ``{"title", "text"}``, the questions in ``NAME.json``. HotpotQA and 2WikiMultihopQA name
the needed titles in ``supporting_facts`` and have their texts in ``context``. MuSiQue marks needed ``paragraphs`` with
``is_supporting``. As in HippoRAG, a passage is needed if title and text are equal, because titles repeat.

JSON lines of ``{"title", "text"}`` and ``{"question", "titles"}`` are read, too: all passages with these titles are
needed.

Papers: Yang et al. 2018, "HotpotQA"; Ho et al. 2020, "Constructing A Multi-hop QA Dataset for Comprehensive Evaluation
of Reasoning Steps"; Trivedi et al. 2022, "MuSiQue"; Gutiérrez et al. 2025, "From RAG to Memory".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict

from .baselines import ALL, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import (
    OURS,
    Collection,
    Progress,
    Question,
    ablations,
    curves,
    evaluate,
    load_scorers,
    run_settings,
    scorer_without,
)
from .metrics import QuestionResult, recall, summarize
from .results import Result, data_files

CORPUS, QUESTIONS = "2wiki-corpus.jsonl", "2wiki-dev.jsonl"
"""File names of JSON lines in a folder."""
CORPUS_END = "_corpus.json"
"""End of the name of HippoRAG's passages; the questions are in the file without it."""
KS = (2, 5, 8)
GROUP = "multi-hop"
"""The kind of questions whose file names none."""


async def run(
    corpus: Path,
    progress: Progress,
    questions: Path | None = None,
    ks: Sequence[int] = KS,
    without: Sequence[str] = (),
    embedder: str | None = None,
    *,
    ablate: bool = False,
    baselines: Sequence[str] = ALL,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure recall@k and perfect@k of zettel and ``baselines`` for each of ``ks``, and per kind of question.

    ``ablate`` adds a row without each part of the scorer, ``scorers`` a row for each name. ``corpus`` is the file with
    passages, or a folder with both files. Raises ``InvalidInput`` for a missing file or one without a question,
    ``BadRecord`` for an invalid record.
    """
    corpus, questions = files(corpus, questions)
    collection, dropped = read(corpus, questions)
    model, scorer = load_embedder(embedder), scorer_without(without)
    simple = load_baselines(baselines, model)
    rankers = load_scorers(scorers)
    outcome = await evaluate(
        [collection], max(ks), scorer, model, progress, baselines=simple.systems,
        scorers=rankers | (ablations() if ablate else {})
    )  # fmt: skip
    measures = {f"recall@{k}": _recall(k) for k in ks} | {f"perfect@{k}": _perfect(k) for k in ks}
    kinds = sorted({question.group for question in collection.questions})
    if len(kinds) > 1:
        measures |= {f"{kind} recall@{max(ks)}": _recall(max(ks), kind) for kind in kinds}
    columns, rows = compare(outcome, measures, [f"{name}@{k}" for name in ("recall", "perfect") for k in ks])
    return Result(
        bench="multihop",
        data=data_files([corpus, questions]),
        ran_on={"passages": len(collection.events), "questions": len(collection.questions)},
        settings=run_settings(scorer, without, model, ks),
        columns=["passages", *columns],
        rows=rows,
        notes=[
            "recall@k: the share of the needed passages in the first k places; perfect@k: the share of questions with "
            "all of them; ms for one search.",
            SIGNIFICANCE,
            f"{dropped} needed passages that are not in the corpus were dropped.",
            f"zettel took {outcome.import_seconds:.1f} s for {len(collection.events)} passages and "
            f"{outcome.search_seconds:.1f} s for {len(collection.questions)} questions.",
            *simple.notes,
        ],
        curves=curves(
            outcome, [OURS, *rankers, *simple.systems], lambda results, k: summarize(results, k).perfect, max(ks)
        ),
    )


def _recall(k: int, kind: str | None = None) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        return recall(result.hits, result.needed, k) if kind in (None, result.group) else None

    return measure


def _perfect(k: int) -> Measure:
    return lambda result: float(recall(result.hits, result.needed, k) == 1.0)


def files(corpus: Path, questions: Path | None) -> tuple[Path, Path]:
    """Return the paths of both files. Raises ``InvalidInput`` for a missing file, or a folder with several corpora."""
    if corpus.is_dir() and not (corpus / CORPUS).is_file() and (found := sorted(corpus.glob(f"*{CORPUS_END}"))):
        if len(found) > 1:
            raise InvalidInput(f"{corpus} has several corpora: name one, such as {found[0]}")
        corpus = found[0]
    if corpus.is_dir():
        corpus, questions = corpus / CORPUS, questions or corpus / QUESTIONS
    if questions is None:
        of_hipporag = corpus.name.endswith(CORPUS_END)
        questions = corpus.with_name(f"{corpus.name.removesuffix(CORPUS_END)}.json" if of_hipporag else QUESTIONS)
    for path in (corpus, questions):
        if not path.is_file():
            raise InvalidInput(
                f"{path} does not exist: pass the passages and the questions, or a folder with NAME{CORPUS_END} and "
                f"NAME.json, or with {CORPUS} and {QUESTIONS}"
            )
    return corpus, questions


def read(corpus: Path, questions: Path) -> tuple[Collection, int]:
    """Return passages as events, their questions, and the number of needed passages that the corpus lacks.

    An event's id is its title, with a number from the second passage with the same title on. A repeated passage is one
    event. Raises ``BadRecord``, and ``InvalidInput`` without a question that the passages answer.
    """
    events: list[Event] = []
    ids: dict[tuple[str, str], str] = {}
    titles: dict[str, list[str]] = {}
    for passage in _objects(corpus, "title", "text"):
        title, key = passage["title"], _key(passage["title"], passage["text"])
        if key in ids:
            continue
        same = titles.setdefault(title, [])
        ids[key] = f"{title} ({len(same) + 1})" if same else title
        same.append(ids[key])
        events.append(Event(external_id=ids[key], title=title, content=passage["text"]))
    answerable, dropped = [], 0
    for number, sample in enumerate(_objects(questions, "question"), start=1):
        try:
            needed = _needed(sample, ids, titles)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadRecord(f"{questions}, question {number}: the needed passages cannot be read: {error!r}") from error
        dropped += needed.count(None)
        if known := frozenset(id for id in needed if id is not None):
            answerable.append(Question(sample["question"], _kind(sample), known))
    if not answerable:
        raise InvalidInput(f"{questions}: no question needs a passage of {corpus}: pass the two files of one benchmark")
    return Collection(corpus.stem, events, answerable), dropped


def _needed(sample: dict[str, Any], ids: dict[tuple[str, str], str], titles: dict[str, list[str]]) -> list[str | None]:
    """Return the ids of the needed passages, None for one that the corpus lacks."""
    if "titles" in sample:
        return [id for title in sorted(set(sample["titles"])) for id in titles.get(title, [None])]
    if "supporting_facts" in sample:
        named = {fact[0] for fact in sample["supporting_facts"]}
        keys = {_key(title, "".join(sentences)) for title, sentences in sample["context"] if title in named}
    else:
        marked = [each for each in sample["paragraphs"] if each.get("is_supporting", True)]
        keys = {_key(each["title"], each["text"] if "text" in each else each["paragraph_text"]) for each in marked}
    return [ids.get(key) for key in sorted(keys)]


def _key(title: str, text: str) -> tuple[str, str]:
    """Return what makes passages equal: HotpotQA's and 2Wiki's corpora join sentences with different white space."""
    return title, "".join(text.split())


def _kind(sample: dict[str, Any]) -> str:
    """Return the kind that the file names: HotpotQA and 2Wiki as ``type``, MuSiQue in the id (``2hop__…``)."""
    hops, sign, _ = str(sample.get("id", "")).partition("__")
    return str(sample["type"]) if "type" in sample else hops if sign else GROUP


def _objects(path: Path, *fields: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; each of ``fields`` is a text."""
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            raise BadRecord(f"{path}:{entry.position}: {entry.reason}")
        if not all(isinstance(as_dict(entry.value).get(field), str) for field in fields):
            raise BadRecord(f"{path}:{entry.source.position}: expected an object with {' and '.join(fields)}")
        yield entry.value
