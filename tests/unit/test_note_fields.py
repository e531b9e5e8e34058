"""The fields of a note are declared once: everything that lists them follows or is compared here."""

from __future__ import annotations

import re
from pathlib import Path

from zettel.model import EDITABLE, Trait, fields_with
from zettel.ports import Annotation
from zettel.server.bodies import Update

ROOT = Path(__file__).parents[2]


def test_an_annotation_has_the_extracted_fields() -> None:
    assert {*Annotation._fields} == {*fields_with(Trait.EXTRACTED)}, "see Annotation in zettel/ports/annotator.py"


def test_the_server_accepts_every_editable_field() -> None:
    assert {*Update.model_fields} == {*EDITABLE}


def test_the_docs_list_the_editable_fields() -> None:
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"sets fields of a note: (.*?) \|", api)
    assert {*re.findall(r"`(\w+)`", listed)} == {*EDITABLE}, "docs/api.md: see update"
    page = (ROOT / "docs" / "data-model.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"`memory.update` sets (.*?)\. ", page, re.DOTALL)
    assert {*re.findall(r"`(\w+)`", listed)} == {*EDITABLE}, "docs/data-model.md: see memory.update"
