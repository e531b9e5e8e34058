"""Transcripts from other programs, read as events.

A format is one small file with a ``name``, ``sniff(path, head)`` and ``read(path)``. The built-in ones are
listed below; others join through the entry point group ``zettel.formats``, whose entries are such modules or
objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from zettel.errors import InvalidInput, UnknownFormat
from zettel.held_files import is_held
from zettel.model import Event, Frozen

BUILT_IN = (
    "locomo",
    "longmemeval",
    "chatgpt",
    "claude",
    "amem",
    "mem0",
    "graphiti",
    "traces",
    "messages",
    "slack",
    "telegram",
    "discord",
    "mbox",
    "whatsapp",
    "subtitles",
    "jsonl",
    "parquet",
    "csv",
    "markdown",
    "plain",
)
"""Names of our own formats, the most telling first: whatever has lines with colons looks plain."""

WHOLE = "zettel"
"""The format of whole memories, which are no transcripts: see ``whole.py``."""

ENTRY_POINTS = "zettel.formats"

HEAD_BYTES = 65_536
"""How much of a file a format may look at to recognise it: some begin with long lists of questions."""

_HOMES = {
    "locomo": "locomo",
    "longmemeval": "longmemeval",
    "chatgpt": "chatgpt",
    "claude": "claude",
    "amem": "amem",
    "csv": "csv_table",
    "graphiti": "graphiti",
    "mem0": "mem0",
    "parquet": "parquet_table",
    "jsonl": "events_jsonl",
    "markdown": "markdown",
    "messages": "messages",
    "plain": "plain",
    "slack": "slack",
    "traces": "traces",
    "telegram": "telegram",
    "discord": "discord",
    "mbox": "mbox",
    "subtitles": "subtitles",
    "whatsapp": "whatsapp",
}


class Rejected(Frozen):
    """A record that was left out: ``position`` is a line number or another place in ``file``."""

    file: str
    position: str
    reason: str


Record: TypeAlias = Event | Rejected
"""What reading yields: an event, its place in ``event.source``, or a record that could not be one."""


class Format(Protocol):
    """A way to read transcripts. A module with these three names is one."""

    @property
    def name(self) -> str:
        """What people call it, as in ``--format``."""
        ...

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the file looks like one of these; ``head`` is its first ``HEAD_BYTES`` bytes, or fewer."""
        ...

    def read(self, path: Path) -> Iterator[Record]:
        """Its records in order, streaming if the format allows; ``BadRecord`` where no more can be read."""
        ...


def formats() -> dict[str, Format]:
    """All formats by name: our own, then those of other packages. A built-in name cannot be taken."""
    found = {name: _built_in(name) for name in BUILT_IN}
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name not in found:
            found[entry.name] = cast(Format, entry.load())
    return found


def choose(path: Path, name: str = "auto", called: str | None = None) -> Format:
    """The format called ``name``, or the one the file itself looks like; complaints call the file ``called``.

    Raises ``UnknownFormat``, which names those there are, and ``InvalidInput`` for a path that is no file, nor a
    folder of a format that reads folders.
    """
    if not path.is_dir():
        require_file(path)
    chosen = detect(path, called) if name == "auto" else named(name)
    if not reads_folders(chosen):
        require_file(path)
    return chosen


def require_file(path: Path) -> None:
    """Raises ``InvalidInput`` for a path that is no file, or a file of a store that is open."""
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it")
    if is_held(path):
        raise InvalidInput(f"{path} belongs to a store that is open: name a transcript, or an export of the store")


def reads_folders(format: Format) -> bool:
    """Whether a format takes a folder or a zip as a whole: its module says ``folders = True``."""
    return bool(getattr(format, "folders", False))


def detect(path: Path, called: str | None = None) -> Format:
    """The first format that recognises the file or folder; raises ``UnknownFormat`` if none does."""
    head = b"" if path.is_dir() else beginning(path)
    known = ranked()
    for format in recognising(path, head, known):
        return format
    if path.is_dir():
        require_file(path)
    from .guessing import looks_like

    raise UnknownFormat(
        f"{called or path} {looks_like(path, head)}; name its format (--format) if it is one of {_listed(formats())}"
    )


def ranked() -> list[Format]:
    """All formats in the order in which they are asked whether they recognise a file."""
    known = formats()
    # Others before the built-in ones: who installs a format means it, and ours are the more general.
    others = [format for name, format in known.items() if name not in BUILT_IN]
    return [*others, *(known[name] for name in BUILT_IN)]


def recognising(path: Path, head: bytes, among: Iterable[Format]) -> Iterator[Format]:
    """Those that take a file that begins with ``head``, or a folder, one after the other."""
    folder = path.is_dir()
    return (format for format in among if (reads_folders(format) or not folder) and format.sniff(path, head))


def beginning(path: Path) -> bytes:
    """As much of a file as formats look at."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def named(name: str) -> Format:
    """The format of that name; raises ``UnknownFormat``, which lists those there are."""
    if isinstance(name, str) and name in BUILT_IN:
        return _built_in(name)
    known = formats()
    if not isinstance(name, str) or name not in known:
        raise UnknownFormat(f"there is no transcript format {name!r}; there are {_listed(known)}")
    return known[name]


def _built_in(name: str) -> Format:
    return cast(Format, import_module(f"zettel.transcripts.{_HOMES[name]}"))


def _listed(known: dict[str, Format]) -> str:
    return ", ".join([*known, WHOLE])
