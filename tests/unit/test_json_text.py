"""Edits of JSON as text: everything else stays, and a removal undoes an addition byte for byte."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import InvalidInput
from zettel.integrations.coding_agents.json_text import appended, parse, removed, with_key, without_key

PATH = ["hooks", "Stop"]
ENTRY = {"command": "zettel hook", "list": [1, {"a": None}]}

SETTINGS = [
    "{}",
    "{}\n",
    '{"model": "opus"}',
    '{"model":"opus","hooks":{"Stop":[{"command":"say"}],"Start":[]}}',
    '{\n  "model": "opus"\n}\n',
    '{\n\t"hooks": {\n\t\t"Start": [\n\t\t\t"x"\n\t\t]\n\t}\n}\n',
    '{\r\n    "hooks": {"Start": [1]},\r\n    "b": 2\r\n}\r\n',
    '\ufeff{\n  // a comment with "quotes"\n  "a": [1, 2,], /* and { another */ "b": "// none",\n}\n',
    '{ "hooks": { "Stop": [ { "command": "say" } // last\n ] } }',
]


def is_ours(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("command") == ENTRY["command"]


@pytest.mark.parametrize("text", SETTINGS)
def test_a_removal_undoes_an_addition(text: str) -> None:
    added = appended(text, PATH, ENTRY)
    assert parse(added).data["hooks"]["Stop"][-1] == ENTRY
    assert removed(added, PATH, is_ours) == text
    assert without_key(with_key(text, "version", 1), "version") == text


def test_a_comment_in_an_empty_object_stays() -> None:
    text = "{\n  // nothing yet\n}\n"
    added = appended(text, PATH, ENTRY)
    assert "// nothing yet" in added
    assert parse(removed(added, PATH, is_ours)).data == {}
    assert "// nothing yet" in removed(added, PATH, is_ours)


def test_an_empty_file_becomes_an_object() -> None:
    assert json.loads(appended("", PATH, ENTRY)) == {"hooks": {"Stop": [ENTRY]}}


def test_an_addition_follows_the_layout_of_the_file() -> None:
    text = '{\n    "hooks": {\n        "Stop": [\n            "say"\n        ]\n    }\n}\n'
    assert appended(text, PATH, "zettel") == text.replace('"say"', '"say",\n            "zettel"')
    assert appended('{"a": 1}', ["b"], "c") == '{"a": 1, "b": ["c"]}'


def test_entries_that_others_added_later_stay() -> None:
    added = appended(appended("{}", PATH, ENTRY), PATH, {"command": "later"})
    assert parse(removed(added, PATH, is_ours)).data == {"hooks": {"Stop": [{"command": "later"}]}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(max_size=5), inner, min_size=1),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "hooks"), JSON),
    st.none() | st.dictionaries(st.sampled_from(["Start", "Stop"]), st.lists(JSON, min_size=1, max_size=2), min_size=1),
    st.sampled_from([None, 2, 4, "\t"]),
    st.booleans(),
)
def test_everything_else_stays(others: dict[str, Any], hooks: Any, indent: Any, is_ascii: bool) -> None:
    data = {**others, **({"hooks": hooks} if hooks else {})}
    text = json.dumps(data, indent=indent, ensure_ascii=is_ascii)
    assert parse(text).data == data
    added = appended(text, PATH, ENTRY)
    before = (hooks or {}).get("Stop", [])
    assert json.loads(added) == {**others, "hooks": {**(hooks or {}), "Stop": [*before, ENTRY]}}
    assert removed(added, PATH, is_ours) == text


@given(st.text(alphabet='{}[]",:/*\\ \n1atrue', max_size=30))
def test_damaged_texts_raise_a_line(text: str) -> None:
    try:
        parse(text)
    except InvalidInput as error:
        assert re.fullmatch(r"line \d+ is .*", str(error))  # noqa: PT017 - or none was raised


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"hooks": [', "line 1 is not valid JSON"),
        ('{\n"hooks": {},,\n}', "line 2 is not valid JSON"),
        ("[" * 200, "line 1 is nested too deeply"),
        ("[]", "the file is not an object"),
        ('{"hooks": []}', "hooks is not an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
        ('{"a": "\\ud8"}', "line 1 is not valid JSON"),
        ('{\n"C:\\proj": {}}', "line 2 is not valid JSON"),
    ],
)
def test_what_cannot_be_edited_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}"):
        appended(text, PATH, ENTRY)
