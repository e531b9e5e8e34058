"""Every Cypher statement that zettel runs, one per file, loaded by name. Installed as ``zettel.cypher``.

``schema/`` holds numbered migrations, ``queries/`` what the Neo4j store runs, ``parts/`` pieces that several statements
share, ``explore/`` what people may run in Neo4j Browser. A file begins with a comment that says what it does; its
values are parameters. Only these things are filled in when a statement is loaded:

* ``{{name}}``: the piece ``parts/name.cypher``, or a whole number or one of zettel's own names handed to :func:`load`;
* ``MICROS(x)``: a point in time as microseconds since 1970;
* lines between ``//: when FLAG`` and ``//: end`` (``//: otherwise`` between them) stand there only if the flag is set;
* ``name.2026.cypher`` takes the place of ``name.cypher`` on servers of that year's releases and later ones.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAMED = re.compile(r"\{\{(\w+)\}\}")
_MICROS = re.compile(r"MICROS\(([\w.]+)\)")
_DIRECTIVE = re.compile(r"\s*//: (when|otherwise|end) ?(\w*)")


def load(name: str, /, *flags: str, release: int = 5, **names: str | int) -> str:
    """The statement ``queries/name.cypher`` as a server of this release (5, or a year) is asked to run it."""
    return _filled(_text("queries", name, release), frozenset(flags), release, names).strip()


def migrations() -> list[list[str]]:
    """The statements of every migration, in order; the first leads from nothing to layout 1."""
    folder = files(__package__) / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".cypher"))
    texts = [_bare((folder / name).read_text(encoding="utf-8")) for name in names]
    return [[statement.strip() for statement in text.split(";") if statement.strip()] for text in texts]


def queries() -> list[str]:
    """The names of all statements."""
    folder = files(__package__) / "queries"
    return sorted({entry.name.split(".")[0] for entry in folder.iterdir() if entry.name.endswith(".cypher")})


def _text(folder: str, name: str, release: int) -> str:
    place = files(__package__) / folder
    newer = place / f"{name}.2026.cypher"
    chosen = newer if release >= 2026 and newer.is_file() else place / f"{name}.cypher"
    return chosen.read_text(encoding="utf-8")


def _filled(text: str, flags: frozenset[str], release: int, names: dict[str, str | int]) -> str:
    def fill(found: re.Match[str]) -> str:
        given = names.get(found[1])
        if given is None:
            return _filled(_text("parts", found[1], release), flags, release, names).strip()
        if isinstance(given, str) and not given.isidentifier():
            raise ValueError(f"{given!r} is no name that may stand in a statement")
        return str(given)

    return _MICROS.sub(r"(\1.epochSeconds * 1000000 + \1.microsecond)", _NAMED.sub(fill, _bare(_chosen(text, flags))))


def _chosen(text: str, flags: frozenset[str]) -> str:
    """The lines that stand there under these flags."""
    kept: list[str] = []
    shown = [True]
    for line in text.splitlines():
        directive = _DIRECTIVE.fullmatch(line)
        if directive is None:
            if all(shown):
                kept.append(line)
        elif directive[1] == "when":
            shown.append(directive[2] in flags)
        elif directive[1] == "otherwise":
            shown[-1] = not shown[-1]
        else:
            shown.pop()
    return "\n".join(kept)


def _bare(text: str) -> str:
    """Without comment lines."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
