"""Every Cypher statement that zettel runs, one per file, loaded by name. Installed as ``zettel.cypher``.

``schema/`` contains numbered migrations, ``queries/`` the statements of the Neo4j store, ``parts/`` fragments that
several statements share, ``explore/`` queries for Neo4j Browser. Each file begins with a comment that describes it, and
takes its values as parameters. :func:`load` expands only these placeholders:

* ``{{name}}``: the fragment ``parts/name.cypher``, or a whole number or identifier passed to :func:`load`;
* ``MICROS(x)``: a datetime as microseconds since 1970;
* lines between ``//: when FLAG`` and ``//: end`` (with an optional ``//: otherwise``): included only with the flag;
* ``name.2026.cypher`` replaces ``name.cypher`` on servers of releases from 2026 on.
"""

from __future__ import annotations

import re
from importlib.resources import files

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_MICROS = re.compile(r"MICROS\(([\w.]+)\)")
_DIRECTIVE = re.compile(r"\s*//: (when|otherwise|end) ?(\w*)")


def load(name: str, /, *flags: str, release: int = 5, **names: str | int) -> str:
    """Return the statement ``queries/name.cypher`` for a server of this release (5, or a year)."""
    return _expanded(_text("queries", name, release), frozenset(flags), release, names).strip()


def migrations() -> list[list[str]]:
    """Return the statements of every migration, in order; the first creates layout 1."""
    folder = files(__package__) / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".cypher"))
    texts = [_without_comments((folder / name).read_text(encoding="utf-8")) for name in names]
    return [[statement.strip() for statement in text.split(";") if statement.strip()] for text in texts]


def queries() -> list[str]:
    """Return the names of all statements in ``queries/``."""
    folder = files(__package__) / "queries"
    return sorted({entry.name.split(".")[0] for entry in folder.iterdir() if entry.name.endswith(".cypher")})


def _text(folder: str, name: str, release: int) -> str:
    path = files(__package__) / folder
    newer = path / f"{name}.2026.cypher"
    chosen = newer if release >= 2026 and newer.is_file() else path / f"{name}.cypher"
    return chosen.read_text(encoding="utf-8")


def _expanded(text: str, flags: frozenset[str], release: int, names: dict[str, str | int]) -> str:
    def expand(match: re.Match[str]) -> str:
        value = names.get(match[1])
        if value is None:
            return _expanded(_text("parts", match[1], release), flags, release, names).strip()
        if isinstance(value, str) and not value.isidentifier():
            raise ValueError(f"{value!r} is not an identifier: pass other values as parameters")
        return str(value)

    expanded = _PLACEHOLDER.sub(expand, _without_comments(_included(text, flags)))
    return _MICROS.sub(r"(\1.epochSeconds * 1000000 + \1.microsecond)", expanded)


def _included(text: str, flags: frozenset[str]) -> str:
    """Return the lines that these flags include."""
    lines: list[str] = []
    conditions = [True]
    for line in text.splitlines():
        directive = _DIRECTIVE.fullmatch(line)
        if directive is None:
            if all(conditions):
                lines.append(line)
        elif directive[1] == "when":
            conditions.append(directive[2] in flags)
        elif directive[1] == "otherwise":
            conditions[-1] = not conditions[-1]
        else:
            conditions.pop()
    return "\n".join(lines)


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
