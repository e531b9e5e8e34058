"""Docs pages of the installed frameworks: their code runs, and a memory takes at most five lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.agent_server import AgentServer
from tests.frameworks.known import FRAMEWORKS
from tests.pages import blocks, enter_folder, name_of, run_page

PAGES = [framework.page for framework in FRAMEWORKS if framework.installed]
MOST_LINES = 5
MARK = "  # +"
"""Marks the lines of a page's first program that add the memory."""


# LlamaIndex stores a chat history with aiosqlite. Without await, its connection outlives the event loop of chat(), and
# its thread may raise that the loop is closed.
@pytest.mark.filterwarnings(
    r"ignore:Exception in thread .*\(_connection_worker_thread\):pytest.PytestUnhandledThreadExceptionWarning"
)
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_run_and_print_the_output_shown(
    page: Path, agent: AgentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(block.reason is None for block in blocks(page))
    enter_folder(tmp_path, monkeypatch)
    run_page(page, tmp_path / "state")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_memory_takes_at_most_five_lines(page: Path) -> None:
    lines = blocks(page)[0].body.splitlines()
    added = [line for line in lines if line.endswith(MARK)]
    assert 1 <= len(added) <= MOST_LINES
    unmarked = [line for line in lines if line not in added and not line.startswith("#> ")]
    code = [re.sub(r"\"[^\"]*\"", "", line) for line in unmarked]  # strings do not count
    assert not [line for line in code if re.search("zettel|(?<!In)(?<!in_)memory", line, re.IGNORECASE)]
