"""docs/cli.md documents every command and every environment variable of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from zettel.cli.app import app
from zettel.cli.common import KEY

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(group: Any, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        yield from commands(command, f"{name} ") if hasattr(command, "commands") else [above + name]


def test_every_command_is_in_the_table() -> None:
    (table,) = re.findall(r"^## Commands$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(documented) == sorted(commands(typer.main.get_command(app)))


def test_every_common_option_and_its_variable_is_documented() -> None:
    root: Any = typer.main.get_command(app)
    for option in root.params:
        if option.name not in ("version", "install_completion", "show_completion"):
            assert f"--{option.name}" in PAGE
        if option.envvar:
            assert f"`{option.envvar}`" in PAGE
    assert f"`{KEY}`" in PAGE
