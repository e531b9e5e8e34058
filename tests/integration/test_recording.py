"""The recording of a terminal in the README: its commands print what it shows."""

from __future__ import annotations

import html
import re

import pytest

from tests.draw_terminal import PICTURE, commands, draw, run

pytestmark = pytest.mark.integration


def _shown(picture: str) -> list[str]:
    """Return the texts of a picture, in order; ids and numbers differ between runs."""
    texts = (html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", picture))
    masked = (re.sub(r"n_[0-9a-f]+|[+-]?[0-9.]+", "N", text.replace("\u00a0", " ")).strip() for text in texts)
    return [text for text in masked if text]


@pytest.mark.timeout(300)
def test_the_picture_shows_the_output_of_its_commands() -> None:
    """Eight processes take some seconds. ``make recording`` draws the picture again."""
    picture = PICTURE.read_text()
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")  # it loads nothing
    shown = _shown(picture)
    assert [text for text in shown if text.startswith("zettel ")] == _shown(
        "".join(f"<text >{line}</text>" for line in commands())
    )
    assert shown == _shown(draw(run(commands())))
