"""PersonaMem-v2: retrieval of the messages in which a user revealed the preference that a request needs.

Reads the first release (``bowen-upenn/PersonaMem-v2`` on Hugging Face): ``benchmark/text/benchmark.csv``, or the table
of another split, with the chat histories that its rows name, such as ``data/chat_history_32k/NAME.json``. The evidence
of a row are the messages of its ``related_conversation_snippet``, compared without white space. A row without such a
message in its history is skipped. The system message of a history is the hidden profile of the persona, so it is not
stored. The answers (multiple choice) are not measured here.

PersonaMem-v1 names no evidence, so it cannot be measured without a model.

Paper: Jiang et al. 2025, "PersonaMem-v2", arXiv 2512.06688.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event
from zettel.transcripts.parsing.json_values import as_dict, as_list, dicts_in, text_at

from .baselines import SIMPLE, CachingEmbedder, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import OURS, Collection, Progress, Question, evaluate_each, load_scorers, run_settings
from .metrics import QuestionResult, ranking, recall, reciprocal_rank
from .results import Result, data_files

KS = (1, 5, 10)
Size: TypeAlias = Literal["32k", "128k"]
"""Length of the histories in tokens."""
_PARENTS = 3
"""Folders above the table in which the paths of histories may begin."""
_ROLES = ("user", "assistant")
_FIELD_CHARS = 1 << 27


@dataclass
class Skipped:
    """Rows without a message of their evidence in the history."""

    rows: int = 0


async def run(
    path: Path,
    progress: Progress,
    ks: Sequence[int] = KS,
    size: Size = "32k",
    embedder: str | None = None,
    *,
    baselines: Sequence[str] = SIMPLE,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure zettel and ``baselines`` on the rows of a table, for each of ``ks``; ``scorers`` adds rows by name.

    Each history has a store of its own. Raises ``BadRecord`` for a damaged file, ``InvalidInput`` for a missing history
    or without a row to count, and the errors of ``load_scorer``.
    """
    model = CachingEmbedder(load_embedder(embedder))
    simple, rankers, skipped = load_baselines(baselines, model), load_scorers(scorers), Skipped()
    histories = read(path, size, skipped)
    outcome, messages = await evaluate_each(histories, max(ks), model, progress, simple.systems, rankers)
    if not outcome.results:
        raise InvalidInput(f"{path} has no row with evidence in its history: pass benchmark.csv of PersonaMem-v2")
    kinds = sorted({result.group for result in outcome.results[OURS]})
    measures = {f"recall@{k}": _recall(k) for k in ks}
    measures["MRR"] = lambda result: reciprocal_rank(ranking(result.hits), result.needed)
    measures |= {f"{kind} @{max(ks)}": _recall(max(ks), kind) for kind in kinds}
    columns, rows = compare(outcome, measures, [f"recall@{k}" for k in ks])
    return Result(
        bench="personamem",
        data=data_files(files(path, size)),
        ran_on={"histories": size, "messages": messages},
        settings=run_settings(None, (), model, ks),
        columns=["retrieval", *columns],
        rows=rows,
        notes=[
            "recall@k: the share of the messages of the evidence in the first k places; ms for one search.",
            SIGNIFICANCE,
            f"Skipped: {skipped.rows} rows without a message of their evidence in the history.",
            f"zettel took {outcome.import_seconds:.1f} s for {messages} messages and {outcome.search_seconds:.1f} s "
            f"for {len(outcome.results[OURS])} questions.",
            *simple.notes,
        ],
    )


def files(path: Path, size: Size) -> list[Path]:
    """Return the table and the histories that it names. Raises as ``read`` does."""
    links = dict.fromkeys(row[_link_column(size)] for _, row in _rows(path, [_link_column(size)]))
    return [path, *(_located(path, link) for link in links)]


def read(path: Path, size: Size, skipped: Skipped) -> Iterator[Collection]:
    """Yield each history with its questions, and count the other rows in ``skipped``.

    Raises ``BadRecord`` and, for a missing history, ``InvalidInput``.
    """
    link_column = _link_column(size)
    columns = (link_column, "user_query", "related_conversation_snippet", "pref_type")
    by_link: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for number, row in _rows(path, columns):
        by_link.setdefault(row[link_column], []).append((number, row))
    for link, rows in by_link.items():
        events = _history(_located(path, link))
        ids: dict[tuple[str | None, str], list[str]] = {}
        for event in events:
            ids.setdefault(_key(event.role, event.content), []).append(str(event.external_id))
        questions = []
        for number, row in rows:
            snippet = dicts_in(_value(row["related_conversation_snippet"]))
            keys = [_key(message.get("role"), message.get("content")) for message in snippet]
            needed = frozenset(id for key in keys for id in ids.get(key, []))
            query = _value(row["user_query"])
            text = as_dict(query).get("content", row["user_query"])
            if not isinstance(text, str) or not text.strip():
                raise BadRecord(f"{path}, row {number}: user_query is not a message or a text")
            if needed:
                questions.append(Question(text, row["pref_type"], needed))
            else:
                skipped.rows += 1
        if questions:
            yield Collection(Path(link).stem, events, questions)


def _link_column(size: Size) -> str:
    return f"chat_history_{size}_link"


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of the table with their number."""
    csv.field_size_limit(_FIELD_CHARS)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [column for column in columns if column not in (reader.fieldnames or ())]:
                raise BadRecord(f"{path} has no column {missing[0]}: pass benchmark.csv of PersonaMem-v2")
            for number, row in enumerate(reader, start=1):
                if any(row[column] is None for column in columns):
                    raise BadRecord(f"{path}, row {number}: the row is cut off")
                yield number, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadRecord(f"{path} is not a table in CSV: {error}") from error


def _located(table: Path, link: str) -> Path:
    for folder in list(table.resolve().parents)[:_PARENTS]:
        if (folder / link).is_file():
            return folder / link
    raise InvalidInput(f"the history {link} of {table} does not exist: download it into the folder of the data set")


def _history(path: Path) -> list[Event]:
    """Return the messages of a history; their ids are their places in the file."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadRecord(f"{path} is not JSON: {error}") from error
    messages = map(as_dict, as_list(as_dict(content).get("chat_history", content)))
    events = [
        Event(external_id=str(place), role=message["role"], content=message["content"])
        for place, message in enumerate(messages)
        if message.get("role") in _ROLES and text_at(message, "content")
    ]
    if not events:
        raise BadRecord(f"{path} has no messages under chat_history")
    return events


def _value(text: str) -> Any:
    """Return a value that is written as JSON or as a Python literal, None for other text."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError):
            continue
    return None


def _key(role: str | None, content: Any) -> tuple[str | None, str]:
    """Return what makes messages equal: snippets and histories differ in white space."""
    return role, "".join(content.split()) if isinstance(content, str) else ""


def _recall(k: int, kind: str | None = None) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        return recall(result.hits, result.needed, k) if kind in (None, result.group) else None

    return measure
