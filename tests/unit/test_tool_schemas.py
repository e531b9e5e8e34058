"""Tool schemas for models: accepted by every service, with descriptions of when to use each tool."""

from __future__ import annotations

from typing import Any

import pytest

from zettel.integrations.recalled_text import MAX_NOTES, RecalledNotes
from zettel.integrations.tool_arguments import schema_of
from zettel.integrations.tools import SPECS
from zettel.model import Note, from_micros

NAMES = ["add_memory", "search_memories", "query_memories", "get_memory", "get_entity", "update_memory",
         "archive_memory", "restore_memory", "delete_memory", "link_memories", "unlink_memories", "memory_history",
         "report_usefulness"]  # fmt: skip


def test_the_tools_have_a_fixed_order_and_declared_effects() -> None:
    assert [spec.name for spec in SPECS] == NAMES
    reading = ["search_memories", "query_memories", "get_memory", "get_entity", "memory_history"]
    assert [spec.name for spec in SPECS if spec.reads_only] == reading
    assert [spec.name for spec in SPECS if spec.destroys] == ["delete_memory"]


@pytest.mark.parametrize("spec", SPECS, ids=NAMES)
def test_schemas_are_flat_and_every_argument_is_described(spec: Any) -> None:
    schema = schema_of(spec.arguments)
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", ())) <= schema["properties"].keys()
    for name, argument in schema["properties"].items():
        assert name.isidentifier()
        assert len(argument["description"]) > 20
        assert argument["type"] in {"string", "integer", "number", "boolean", "array"}
        assert not argument.keys() & {"anyOf", "$ref", "title"}
        assert argument.get("default", 0) is not None
    assert 100 < len(spec.description) < 1024  # the limit of OpenAI
    # Models cannot choose the scope.
    description = str(schema).lower() + spec.description.lower()
    assert not any(word in description for word in ("cypher", "scope", "tenant", "agent"))


def note(n: int, content: str) -> Note:
    return Note(id=f"n_{n}", content=content, event_ids=(f"e_{n}",), seq=n, recorded_at=from_micros(0))


@pytest.mark.parametrize(
    ("text", "holders"),
    [
        ("Ann lives in Oslo.", ["n_1"]),
        ("- ann LIVES in\tOslo", ["n_1"]),
        ("the red boat is Ida's", ["n_2"]),
        ("Ann lives in Oslo.\n\nThe red boat is Ida's.", ["n_1", "n_2"]),
        ("Ann lives in Oslo.\nShe moved there in May.", []),
        ("Ann lives in Oslo now.", []),
        ("in Oslo", []),
        ("Yes.", ["n_3"]),
        ("", []),
        ("?!", []),
    ],
)
def test_recalled_text_is_recognised_by_its_words(text: str, holders: list[str]) -> None:
    recalled = RecalledNotes()
    contents = ["Ann lives in Oslo.", "She said that the red boat is Ida's, not Nils'.", "Yes."]
    for n, content in enumerate(contents, 1):
        recalled.add(note(n, content))
    assert recalled.source_ids(text) == holders


def test_only_the_latest_recalled_texts_are_cached() -> None:
    recalled = RecalledNotes()
    for n in range(MAX_NOTES + 1):
        recalled.add(note(n, f"Number {n} of the lot."))
    assert recalled.source_ids("Number 0 of the lot.") == []
    assert recalled.source_ids("Number 1 of the lot.") == ["n_1"]
    recalled.remove("n_1")
    assert recalled.source_ids("Number 1 of the lot.") == []
