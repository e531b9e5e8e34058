"""Recording of a terminal session in docs/pictures/terminal.svg (``make recording``).

The commands are those of docs/pictures/terminal.txt. They run in an empty folder, and the lines appear in the picture
one after the other. A picture that plays in a README needs an SVG with animations of CSS, and no script.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from zettel import Memory
from zettel.version import VERSION

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
COMMANDS, PICTURE = PICTURES / "terminal.txt", PICTURES / "terminal.svg"
WIDTH = 90
"""Columns of the terminal."""
MARGIN = 2
"""Empty columns at the right, since fonts differ in width."""
COMMAND_SECONDS, OUTPUT_SECONDS, READING_SECONDS = 0.9, 0.08, 1.6
"""Pauses before the output of a command, before each of its lines, and before the next command."""
_SVG = """\
<svg viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "Cascadia Code", Menlo, Consolas, monospace; \
font-size: {char_height}px; line-height: {line_height}px }}
{styles}
{animation}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect width="{terminal_width}" height="{terminal_height}" rx="8" fill="#292929"/>
<g transform="translate(9, 9)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_NAME = "zettel"
"""The prefix of the ids and classes in the picture."""


def commands() -> list[str]:
    """Return the commands of the recording."""
    return COMMANDS.read_text().splitlines()


def run(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Run commands in an empty folder; return each with the lines of its output, with their colours.

    Between them the background jobs end, so that the output does not depend on the speed of the machine.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ZETTEL_")}
    environment |= {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "PYTHONPATH": str(PICTURES.parents[1])}
    outputs = []
    with tempfile.TemporaryDirectory() as folder:
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "zettel", line
            command = [sys.executable, "-m", "zettel", *arguments]
            ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            with Memory(Path(folder, "zettel.db")) as memory:
                memory.flush()
            outputs.append((line, ran.stdout.rstrip("\n").split("\n")))
    return outputs


def draw(outputs: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the picture of a session as SVG."""
    console = Console(record=True, width=WIDTH + MARGIN, file=StringIO(), force_terminal=True, color_system="truecolor")
    times: list[float] = []
    now = 0.0
    for command, lines in outputs:
        prompt = Text.assemble(("$ ", "bold green"), (command, "bold"))
        texts = [(prompt, COMMAND_SECONDS), *((Text.from_ansi(line), OUTPUT_SECONDS) for line in lines)]
        for text, pause in texts:
            wrapped = text.wrap(console, WIDTH) or [text]
            for row in wrapped:
                console.print(row)
            times += [now] * len(wrapped)
            now += pause
        console.print()
        times.append(now)
        now += READING_SECONDS
    style = _SVG.replace("{animation}", _animation(times))
    drawn = console.export_svg(title=f"zettel {VERSION}", code_format=style, unique_id=_NAME)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def _animation(times: Sequence[float]) -> str:
    """Return the style that lets the lines appear at their times, in seconds; braces are doubled."""
    delays = "\n".join(
        f'[clip-path="url(#{_NAME}-line-{number})"] {{{{ animation-delay: {time:.2f}s }}}}'
        for number, time in enumerate(times)
    )
    return (
        f".{_NAME}-matrix text {{{{ animation: appear 0.01s both }}}}\n"
        f"@keyframes appear {{{{ from {{{{ opacity: 0 }}}} }}}}\n"
        f"@media (prefers-reduced-motion) {{{{ .{_NAME}-matrix text {{{{ animation: none }}}} }}}}\n{delays}"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(run(commands())))
