"""Site hook: Mermaid diagrams as SVG, drawn while the site is built, so that readers load no script for them."""

from __future__ import annotations

import re
from typing import Any

from mermaidx import render

_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace the diagrams of a page. Raises ``RuntimeError`` for a diagram that Mermaid cannot parse."""
    return _DIAGRAM.sub(lambda match: f"<div class='diagram'>{svg(match[1])}</div>\n", markdown)


def svg(source: str) -> str:
    """Return a diagram as one line of SVG."""
    drawing: str = render(source).svg()
    return re.sub(r"\s*\n\s*", " ", drawing)
