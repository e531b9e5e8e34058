"""The pages of the frameworks that are installed here: their code runs, and they begin with the few lines promised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.agent_server import AgentServer
from tests.frameworks.known import FRAMEWORKS
from tests.pages import blocks, name_of, run_page, stand_in

PAGES = [framework.page for framework in FRAMEWORKS if framework.installed]
MOST_LINES = 5
MARK = "  # +"
"""Ends the lines of a page's first program that memory adds to it."""


# LlamaIndex keeps a chat history by aiosqlite, whose connection outlives the event loop of a chat() that is not
# awaited: whenever it is collected, its thread may say that the loop is closed.
@pytest.mark.filterwarnings(
    r"ignore:Exception in thread .*\(_connection_worker_thread\):pytest.PytestUnhandledThreadExceptionWarning"
)
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_run_and_show_what_comes_out(
    page: Path, agent: AgentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(block.reason is None for block in blocks(page))
    stand_in(tmp_path, monkeypatch)
    run_page(page, tmp_path / "state")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_memory_takes_five_lines(page: Path) -> None:
    lines = blocks(page)[0].body.splitlines()
    added = [line for line in lines if line.endswith(MARK)]
    assert 1 <= len(added) <= MOST_LINES
    unmarked = [line for line in lines if line not in added and not line.startswith("#> ")]
    told = [re.sub(r"\"[^\"]*\"", "", line) for line in unmarked]  # what is said to a model does not count
    assert not [line for line in told if re.search("zettel|(?<!In)memory", line, re.IGNORECASE)]
