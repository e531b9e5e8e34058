"""Expressions that are tried only on texts with their letters find what plain expressions find."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.expressions import Expression, literals
from zettel.text.language_files import language, language_codes

TEXTS = [
    text
    for code in language_codes()
    for frame in json.loads(files("zettel.text").joinpath(f"languages/{code}.json").read_text())["frames"]
    for text, _ in frame["examples"]
]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (r"\b(?:would|could)\b", ("would", "could")),
        (r"\bw(?:ould|ill)\b", ("ould", "ill")),
        (r"(they|we)'re", ("'re",)),  # the fewest of equal length
        (r"scales? (?:reads|read)", ("scale",)),
        (r"a|\d", ()),
        (r"(?:a|)b?", ()),
        (r"(?:long )*(?:word){0,2}", ()),
        (r"(?:word){,2}x", ("x",)),
        (r"(?:word){2}", ("word",)),
        (r"(?<=longest)(?=longest)(?!longest)is", ("is",)),
        (r"[|(]na\)me\|", ("na",)),
        (r"[]a]bc[^]d]", ("bc",)),
        (r"(?-i:[A-Z])and (?P<name>who)\d{1,2}", ("and ",)),
        (r"NAME", ("name",)),
        (r"", ()),
        (r"don\u2019t|\x41bc|\101bd", ("don", "bc", "bd")),
        (r"(?i)a", ()),
        (r"a(?#comment)", ()),
        (r"(?x:a b)cd|(?s-i:foo)de|(?P<q>a)(?P=q)", ("cd", "de", "a")),
        (r"(?:word){0}x|(?:word){,}x", ("x",)),
    ],
)
def test_literals(expression: str, found: tuple[str, ...]) -> None:
    assert literals(expression) == found


@pytest.mark.parametrize("code", language_codes())
def test_the_expressions_of_a_language_find_what_plain_ones_find(code: str) -> None:
    chosen = language(code)
    named = {field.name: getattr(chosen, field.name) for field in fields(chosen)}
    expressions = [value for value in named.values() if isinstance(value, Expression)]
    expressions += [expression for name in ("contractions", "negations") for expression, _ in named[name]]
    assert len(expressions) > 10
    for expression in expressions:
        plain = re.compile(expression.pattern, re.IGNORECASE)
        for text in (*TEXTS, *map(str.upper, TEXTS), *(text.replace("i", "\u0131") for text in TEXTS)):
            match, expected = expression.search(text), plain.search(text)
            assert (match and match.span()) == (expected and expected.span()), (expression.pattern, text)
            assert expression.sub("|", text) == plain.sub("|", text)


@pytest.mark.parametrize("text", ["He sa\u0131d", "\u0130S", "a\u017f"])
def test_letters_with_another_lower_case_are_found(text: str) -> None:
    assert Expression(r"said|is|as").search(text)


WORDS = st.sampled_from(["a", "I", "we", "not ", " no", "'s", "any more"])
PARTS = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{0,2}", "{2}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
        inner.map(lambda part: f"(?={part})"),
        inner.map(lambda part: f"{part}\\b"),
    ),
    max_leaves=8,
)


@given(PARTS, st.lists(WORDS, max_size=8).map("".join))
def test_any_expression_finds_what_a_plain_one_finds(expression: str, text: str) -> None:
    expected = re.search(expression, text, re.IGNORECASE)
    match = Expression(expression).search(text)
    assert (match and match.span()) == (expected and expected.span())
