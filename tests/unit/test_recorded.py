"""Annotations replayed from a file instead of requested from a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from zettel.annotate.recorded import RecordedAnnotator
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Kind
from zettel.ports import Passage
from zettel.ports.language_model import (
    AnnotationItem,
    AnnotationRequest,
    AnnotationResult,
    Answer,
    ModelAnnotation,
    Request,
)

GOOD = {"id": "a", "context": "Ann sold her canoe.", "keywords": ["canoe"], "tags": ["sale"]}


def _write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _turn(note: str, key: str | None) -> AnnotationItem:
    return AnnotationItem(note, key, Passage("Sold!", None, "Ann", None))


def _annotate(annotator: RecordedAnnotator, *turns: AnnotationItem) -> AnnotationResult:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        raise AssertionError("nobody is to be asked")

    return asyncio.run(annotator.annotate(AnnotationRequest(turns), ask))


def test_turns_get_the_annotation_recorded_for_their_event(tmp_path: Path) -> None:
    full = {**GOOD, "id": "b", "importance": 0.8, "kind": "procedural", "facts": ["Canoes float."], "other": 1}
    annotator = RecordedAnnotator(_write(tmp_path / "notes.jsonl", "\ufeff" + json.dumps(GOOD), "", json.dumps(full)))
    parts = _turn("n_1", "a"), _turn("n_2", "a"), _turn("n_3", "b")
    annotation = _annotate(annotator, *parts, _turn("n_4", "c"), _turn("n_5", None))
    plain = ModelAnnotation("Ann sold her canoe.", ("canoe",), ("sale",))
    rich = plain._replace(importance=0.8, kind=Kind.PROCEDURAL, facts=("Canoes float.",))
    assert annotation.turns == (plain, plain, rich, None, None)
    assert annotation.model == annotator.name == "recorded notes.jsonl"
    assert len(annotator) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "b", "context": "cut of', "not JSON"),
        ("[" * 5000, "not JSON"),
        ('["id"]', "expected an object"),
        ('{"context": "x"}', '"id" is missing'),
        ('{"id": 7, "context": "x"}', '"id" is missing'),
        ('{"id": "b"}', "context: missing"),
        ('{"id": "b", "context": " "}', "context: empty"),
        ('{"id": "b", "context": "x", "keywords": 3}', "keywords: of the wrong type"),
        (json.dumps(GOOD), "duplicate id 'a'"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    path = _write(tmp_path / "notes.jsonl", json.dumps(GOOD), line)
    with pytest.raises(BadRecord, match=message) as caught:
        RecordedAnnotator(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert "\n" not in str(caught.value)


def test_an_unreadable_file_raises(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.jsonl cannot be read: No such file"):
        RecordedAnnotator(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(BadRecord, match=r"bytes\.jsonl:1: byte 8 is not UTF-8"):
        RecordedAnnotator(tmp_path / "bytes.jsonl")
