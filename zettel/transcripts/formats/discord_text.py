"""Conversion of Discord's mentions and emoji to plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MENTION = re.compile(r"<(?P<kind>@!?|@&|#|a?:\w+:)(?P<id>\d+)>")


def readable(text: str, people: Mapping[str, str | None]) -> str:
    """Return ``<@7> look <:wave:9>`` as ``@Ann look :wave:``; unknown ids stay numbers."""

    def replacement(match: re.Match[str]) -> str:
        kind, id = match["kind"], match["id"]
        if ":" in kind:
            return kind.removeprefix("a")
        return f"{kind[0]}{people.get(id) or id}"

    return _MENTION.sub(replacement, text)
