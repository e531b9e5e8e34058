"""Site hook: the page of commands, from the help texts of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from zettel.cli.app import app

MARK = "<!-- commands -->"
_EXAMPLES = re.compile(r"\x08\nExamples?:\n(.*?)(?:\n\n|\Z)", re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the commands in the place of the mark."""
    return markdown.replace(MARK, commands_text()) if MARK in markdown else markdown


def commands_text() -> str:
    """Return one section for each command, and one for the options of every command."""
    root: Any = typer.main.get_command(app)
    sections = [_section("zettel", root)]
    sections += [_section(f"zettel {name}", command) for name, command in commands(root)]
    return "\n".join(sections)


def commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group and of the groups in it, with their names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{above}{name} ")
        else:
            yield above + name, command


def _section(name: str, command: Any) -> str:
    context: Any = typer.Context(command, info_name=name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    help_text = command.help or ""
    parts = [f"## {name}", _EXAMPLES.sub("", help_text).replace("\x08\n", "").strip(), f"```text\n{usage}\n```"]
    if records := [record for parameter in command.params if (record := parameter.get_help_record(context))]:
        rows = [f"| `{_cell(form)}` | {_escaped(description)} |" for form, description in records]
        parts.append("\n".join(["| Option | Description |", "| --- | --- |", *rows]))
    for examples in _EXAMPLES.findall(help_text):
        parts.append("```bash\n" + re.sub("^  ", "", examples, flags=re.MULTILINE).rstrip() + "\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """Return a help text, which is not Markdown, for a cell."""
    return re.sub(r"([\\`*_\[\]<|])", r"\\\1", _cell(text))
