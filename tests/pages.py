"""Docs pages as programs: runs their code blocks in order and compares the output shown on the page.

Blocks of one page share one folder and one namespace. In Python, ``#> `` lines are the output of the block above, as is
a ``text`` block after the line "prints"; in a ``console`` block, the lines after a ``$ `` line. The output is compared
except for ids, durations, dates and times near now, and white space. Scores may differ a little between machines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from zettel import Memory

CHECKOUT = Path(__file__).parents[1]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
EXECUTED = {"python", "console", "bash"}

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n+)?^```(?P<language>\w+)\n(?P<body>.*?)^```$"
    r"(?:\n\nprints\n\n^```text\n(?P<prints>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_FIGURE = re.compile(r"((?<!\w)-?\d(?:[\d.,:]*\d)?(?:[-T]\d[\d.:]*)*(?: \d\d:\d\d[\d:]*)?)")
_SCORE = re.compile(r"-?[01]?\.\d+")
MAX_SCORE_DIFFERENCE = 0.02
"""Largest difference of a score or a cosine between machines."""
CLOCK_MINUTES = 5
"""Minutes for which a printed time of day without a date counts as that of the run."""
MAX_TOKEN_DIFFERENCE = 0.05
"""Largest relative difference of the tokens of prompts between runs, because an id takes more or fewer tokens."""

_OUTPUT = re.compile(r"^ *#> ?(.*)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the first line of its body, the reason if it is not run, and the output in a block below it."""

    language: str
    body: str
    line: int
    reason: str | None
    prints: str | None = None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fenced = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body")) + 1
        fenced.append(Block(match["language"], match["body"], line, match["reason"], match["prints"]))
    return [block for block in fenced if block.language in EXECUTED]


def name_of(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


def differences(printed: str, shown: str) -> list[str]:
    """Return the lines that a page shows in another way than they are printed."""
    pairs = zip_longest(_lines(printed), _lines(shown), fillvalue="")
    return [f"{one!r} is shown as {other!r}" for one, other in pairs if not _is_alike(one, other)]


def _lines(text: str) -> list[str]:
    """Return the lines with words, without ids and ellipses, and with one space for each white space."""
    text = re.sub(r"\b([nejs])_[0-9a-f]{4,}…?", r"\1_ID", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _is_alike(printed: str, shown: str) -> bool:
    one, other = _FIGURE.split(printed), _FIGURE.split(shown)
    if one[::2] != other[::2]:
        return False
    after = one[2::2]
    return all(
        a == b or _are_scores(a, b) or _is_duration(text) or _are_near_now(a, b) or _are_tokens_of_a_model(a, b, text)
        for a, b, text in zip(one[1::2], other[1::2], after, strict=True)
    )


def _are_scores(printed: str, shown: str) -> bool:
    if not (_SCORE.fullmatch(printed) and _SCORE.fullmatch(shown)):
        return False
    return abs(float(printed) - float(shown)) <= MAX_SCORE_DIFFERENCE + 1e-9


def _is_duration(after: str) -> bool:
    return re.match(r" ?(?:s|ms|seconds)\b", after) is not None


def _are_tokens_of_a_model(printed: str, shown: str, after: str) -> bool:
    """Return whether both are nearly as many tokens of prompts, which contain random ids."""
    if not after.startswith(" tokens"):
        return False
    one, other = (float(text.replace(",", "")) for text in (printed, shown))
    return abs(one - other) <= MAX_TOKEN_DIFFERENCE * other


def _are_near_now(printed: str, shown: str) -> bool:
    """Return whether both are dates or times in the same format, and the printed one is of these days or minutes."""
    if re.sub(r"\d", "0", printed) != re.sub(r"\d", "0", shown):
        return False
    now = datetime.now(timezone.utc)
    if re.fullmatch(r"\d\d:\d\d", printed):
        return printed in [(now - timedelta(minutes=minutes)).strftime("%H:%M") for minutes in range(CLOCK_MINUTES)]
    days = [(datetime.now() + timedelta(days=days)).strftime("%Y-%m-%d") for days in (-1, 0, 1)]
    return printed.startswith(tuple(days))


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
    shown = "\n".join([*_OUTPUT.findall(block.body), *(block.prints or "").splitlines()])
    if shown:
        check_output(out.getvalue(), shown, where)


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
        check_output(done.stdout, shown, f"{where}: {command}")


def check_output(printed: str, shown: str, where: str) -> None:
    found = differences(printed, shown)
    assert not found, f"{where} prints\n{printed}\n" + "\n".join(found)
