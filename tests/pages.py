"""The pages of the docs as programs: their blocks of code, run in order, and what a page says that comes out.

Blocks of one page run in one folder and one namespace. In Python, ``#> `` lines are the output of the block above them;
in a ``console`` block, what follows a ``$ `` line is. Numbers, ids and white space are not compared.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from zettel import Memory

CHECKOUT = Path(__file__).parents[1]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
EXECUTED = {"python", "console", "bash"}

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n+)?^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SAID = re.compile(r"^ *#> ?(.*)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the line its body starts at, and why it is not run, if it is not."""

    language: str
    body: str
    line: int
    reason: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body")) + 1
        found.append(Block(match["language"], match["body"], line, match["reason"]))
    return [block for block in found if block.language in EXECUTED]


def name_of(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


def without_numbers(text: str) -> list[str]:
    """What is compared: lines without ids, numbers, signs of a cut and white space at their ends and between words."""
    text = re.sub(r"\b([nejs])_[0-9a-f]{4,}…?", r"\1_ID", text)
    text = re.sub(r"\d[\d.,:]*", "#", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder, with ``zettel`` on the path, even where it is not installed."""
    command = folder / "bin" / "zettel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zettel "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("ZETTEL_STORE", "ZETTEL_EMBEDDER", "ZETTEL_LLM", "ZETTEL_BUDGET"):
        monkeypatch.delenv(name, raising=False)
    place = folder / "page"
    place.mkdir()
    monkeypatch.chdir(place)


def run_page(page: Path, state: Path) -> None:
    """Run all blocks of a page; ``state`` is a file for what its commands leave to those after them."""
    names: dict[str, Any] = {"__name__": f"docs.{page.stem}"}
    left_out = 0
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.reason is not None:
            left_out += 1
            print(f"{where}: not run: {block.reason}")
        elif block.language == "python":
            run_python(block, where, names)
        else:
            for command, shown in commands(block):
                run_command(command, shown, where, state)
    for value in names.values():
        if isinstance(value, Memory):
            value.close()
    print(f"{name_of(page)}: {len(blocks(page)) - left_out} blocks run, {left_out} not")


def run_python(block: Block, where: str, names: dict[str, Any]) -> None:
    padded = "\n" * (block.line - 1) + block.body  # so that a traceback tells the page's own lines
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(padded, where, "exec"), names)
    shown = "\n".join(_SAID.findall(block.body))
    if shown:
        assert without_numbers(out.getvalue()) == without_numbers(shown), f"{where} prints\n{out.getvalue()}"


def commands(block: Block) -> Iterator[tuple[str, str | None]]:
    """The command lines of a block, each with the output that the page shows for it, if any."""
    if block.language == "bash":
        yield block.body, None
        return
    for piece in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        yield "\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :]).strip() or None


def run_command(command: str, shown: str | None, where: str, state: Path) -> None:
    """Run it in bash; variables that a command of the page has set are there for those after it."""
    script = f"set -eu -o pipefail\n[ -f {state} ] && . {state}\nset -a\n{command}\nset +x; export -p > {state}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
    if shown is not None:
        assert without_numbers(done.stdout) == without_numbers(shown), f"{where}: {command}\n{done.stdout}"
