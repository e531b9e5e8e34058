"""Discord's way of writing mentions and signs of its own, made readable."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MENTION = re.compile(r"<(?P<kind>@!?|@&|#|a?:\w+:)(?P<id>\d+)>")


def readable(text: str, people: Mapping[str, str | None]) -> str:
    """``<@7> look <:wave:9>`` as ``@Ann look :wave:``; what has no name keeps its number."""

    def told(found: re.Match[str]) -> str:
        kind, id = found["kind"], found["id"]
        if ":" in kind:
            return kind.removeprefix("a")
        return f"{kind[0]}{people.get(id) or id}"

    return _MENTION.sub(told, text)
