"""docs/architecture.md matches the code: the drawing, the tables, and the longest chain of imports."""

from __future__ import annotations

import re

import pytest

from tests import draw_architecture

MAX_CHAIN = 12  # never raise this limit


@pytest.fixture(scope="module")
def page() -> str:
    return draw_architecture.PAGE.read_text(encoding="utf-8")


def test_the_drawing_matches_the_code(page: str) -> None:
    assert page == draw_architecture.redrawn(page), "run: make architecture"


def test_every_package_is_in_a_table(page: str) -> None:
    rows = re.findall(r"^\| [A-Za-z ]*\| `(\w+)` \||^\| `(\w+)` \|", page, re.MULTILINE)
    assert {first or second for first, second in rows} == set(draw_architecture.package_graph())


def test_the_longest_chain_is_short() -> None:
    assert len(draw_architecture.longest_chain(draw_architecture.package_graph())) <= MAX_CHAIN
