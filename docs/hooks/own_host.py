"""Site hook: fails the build if a page makes a reader's browser load something from another host."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.exceptions import PluginError

_LOADED = re.compile(
    r"<(?:script|img|iframe|video|audio|source|embed)\b[^>]*?\ssrc(?:set)?=[\"']?(?:https?:)?//[^\"'\s>]+"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon|manifest|dns-prefetch))[^>]*?\shref=[\"']?(?:https?:)?//[^\"'\s>]+"
    r"|(?:@import\s+|url\()[\"']?(?:https?:)?//[^\"')\s]+",
    re.IGNORECASE,
)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Check the HTML of a page."""
    if loaded := foreign_resources(output):
        raise PluginError(f"{page.file.src_uri} loads {', '.join(loaded)}: store it in docs/ instead")
    return output


def foreign_resources(html: str) -> list[str]:
    """Return the parts of a page that load something from another host."""
    return [match[0] for match in _LOADED.finditer(html)]
