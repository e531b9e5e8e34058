"""Site hook: the page of errors, from the docstrings of zettel/errors.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from zettel.errors import ZettelError
from zettel.remote.wire import status_of

MARK = "<!-- errors -->"
_CAUSE_AND_CURE = re.compile(r"\n\nCause: (?P<cause>.+?)\n\n?Cure: (?P<cure>.+?)\s*$", re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the errors in the place of the mark."""
    return markdown.replace(MARK, errors_text()) if MARK in markdown else markdown


def errors_text() -> str:
    """Return one section for each class, parents first."""
    return "\n".join(_section(kind) for kind in tree(ZettelError))


def tree(kind: type[ZettelError]) -> Iterator[type[ZettelError]]:
    """Yield a class and all classes below it, in the order of the file."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == ZettelError.__module__:
            yield from tree(below)


def cause_and_cure(kind: type[ZettelError]) -> tuple[str, str]:
    """Return both parts of the docstring of a class. Raises ``ValueError`` if one is missing."""
    match = _CAUSE_AND_CURE.search(re.sub(r"\n +", "\n", kind.__doc__ or ""))
    if match is None:
        raise ValueError(f"the docstring of {kind.__name__} needs a paragraph 'Cause: …' and a paragraph 'Cure: …'")
    return " ".join(match["cause"].split()), " ".join(match["cure"].split())


def _section(kind: type[ZettelError]) -> str:
    cause, cure = cause_and_cure(kind)
    bases = " and ".join(f"`{base.__name__}`" for base in kind.__bases__)
    status = status_of(kind.__new__(kind))
    return f"""## {kind.__name__}

{(kind.__doc__ or "").partition(chr(10))[0]} Subclass of {bases}; HTTP status {status}.

- **Cause:** {cause}
- **Cure:** {cure}
"""
