"""Docs pages as programs: runs their code blocks in order and compares the output shown on the page.

Blocks of one page share one folder and one namespace. In Python, ``#> `` lines are the output of the block above;
in a ``console`` block, the lines after a ``$ `` line. Numbers, ids and white space are not compared.
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
_OUTPUT = re.compile(r"^ *#> ?(.*)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the first line of its body, and the reason if it is not run."""

    language: str
    body: str
    line: int
    reason: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fenced = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body")) + 1
        fenced.append(Block(match["language"], match["body"], line, match["reason"]))
    return [block for block in fenced if block.language in EXECUTED]


def name_of(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


def without_numbers(text: str) -> list[str]:
    """Return lines for comparison, without ids, numbers, ellipses, and white space at ends and between words."""
    text = re.sub(r"\b([nejs])_[0-9a-f]{4,}…?", r"\1_ID", text)
    text = re.sub(r"\d[\d.,:]*", "#", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def enter_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder with ``zettel`` and this ``python`` on the path, even if zettel is not installed."""
    commands = folder / "bin"
    commands.mkdir()
    for name, options in (("zettel", "-m zettel"), ("python", "")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {options} "$@"\n')
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("ZETTEL_STORE", "ZETTEL_EMBEDDER", "ZETTEL_LLM", "ZETTEL_BUDGET"):
        monkeypatch.delenv(name, raising=False)
    place = folder / "page"
    place.mkdir()
    monkeypatch.chdir(place)


def run_page(page: Path, state: Path) -> None:
    """Run all blocks of a page; ``state`` is a file with variables for later commands."""
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
    padded = "\n" * (block.line - 1) + block.body  # so that tracebacks show the lines of the page
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(padded, where, "exec"), names)
    shown = "\n".join(_OUTPUT.findall(block.body))
    if shown:
        assert without_numbers(out.getvalue()) == without_numbers(shown), f"{where} prints\n{out.getvalue()}"


def commands(block: Block) -> Iterator[tuple[str, str | None]]:
    """Return the command lines of a block, each with its output on the page."""
    if block.language == "bash":
        yield block.body, None
        return
    for piece in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        yield "\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :]).strip() or None


def run_command(command: str, shown: str | None, where: str, state: Path) -> None:
    """Run a command in bash; later commands see the variables that it sets."""
    script = f"set -eu -o pipefail\n[ -f {state} ] && . {state}\nset -a\n{command}\nset +x; export -p > {state}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
    if shown is not None:
        assert without_numbers(done.stdout) == without_numbers(shown), f"{where}: {command}\n{done.stdout}"
