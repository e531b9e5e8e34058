"""Registry of transcript formats.

A format is a module or an object with ``name``, ``sniff(path, head)`` and ``read(path)``. Other packages add formats
through the entry point group ``zettel.formats``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast, runtime_checkable

from zettel.core.open_files import is_open
from zettel.errors import InvalidInput, UnknownFormat
from zettel.model import Event, Frozen

if TYPE_CHECKING:
    from .archive_tree import File

BUILT_IN = tuple(
    "locomo longmemeval chatgpt claude claude-code codex gemini-cli amem mem0 graphiti server-memory traces messages "
    "slack telegram discord mbox whatsapp subtitles jsonl parquet csv markdown plain".split()
)
"""Built-in formats, the most specific first: any text with colons matches ``plain``."""

MEMORY_FILE_FORMAT = "zettel"
"""The format of memory files, which are not transcripts: see ``zettel.core.memory_file``."""

ENTRY_POINTS = "zettel.formats"

HEAD_BYTES = 65_536
"""Bytes that ``sniff`` receives: some files begin with long lists of questions."""

_MODULES = {
    **{"csv": "csv_table", "jsonl": "events_jsonl", "parquet": "parquet_table"},
    **{"claude-code": "claude_code", "gemini-cli": "gemini_cli", "server-memory": "server_memory"},
}
"""Modules in ``formats`` whose name differs from that of the format."""


_OTHER_NAMES = {
    "obsidian": "markdown", "vault": "markdown", "md": "markdown", "openai": "chatgpt", "anthropic": "claude",
    "mail": "mbox", "email": "mbox", "vtt": "subtitles", "srt": "subtitles", "tsv": "csv", "txt": "plain",
    "text": "plain",
}  # fmt: skip
"""Names that people expect, and the format that reads such files."""


class Rejected(Frozen):
    """A record that cannot be stored; ``position`` is a line number or another place in ``file``."""

    file: str
    position: str
    reason: str


Record: TypeAlias = Event | Rejected
"""An event with its ``source``, or a rejected record."""

ReadRecord: TypeAlias = Record | None
"""A record, or None for one that the format skips because the file repeats it or it is empty."""


class Format(Protocol):
    """Reads one kind of transcript. A module with these three names is a format."""

    @property
    def name(self) -> str:
        """The name for ``format=`` and ``--format``."""
        ...

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether this format recognises the file; ``head`` is its first ``HEAD_BYTES`` bytes, or fewer."""
        ...

    def read(self, path: Path) -> Iterator[ReadRecord]:
        """Yield the records in order. Raises ``BadRecord`` if the rest of the file cannot be read."""
        ...


@runtime_checkable
class FolderFormat(Protocol):
    """Optional: the format also reads an export that is a folder or a zip, as a whole."""

    folders: bool


@runtime_checkable
class ExtraFilesFormat(Protocol):
    """Optional: the format names the files of an export that it leaves to other formats."""

    def extra_files(self, path: Path) -> Iterator[File]:
        """Yield the files in an export's folder or zip that do not belong to the export."""
        ...


@runtime_checkable
class GapFormat(Protocol):
    """Optional: records carry no session, so that a long pause begins a new one."""

    gaps: bool


@runtime_checkable
class LocalTimeFormat(Protocol):
    """Optional: times have no zone, so that ``read`` accepts ``zone``."""

    local_times: bool


@runtime_checkable
class FolderSniffFormat(Protocol):
    """Optional: the format recognises files less readily among other files than if a person names one."""

    def sniff_in_folder(self, path: Path, head: bytes) -> bool:
        """Return whether this format recognises a file of a folder; arguments as for ``sniff``."""
        ...


def all_formats() -> dict[str, Format]:
    """Return all formats by name. Other packages cannot replace a built-in format."""
    by_name = {name: _built_in(name) for name in BUILT_IN}
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name not in by_name:
            by_name[entry.name] = cast(Format, entry.load())
    return by_name


def choose(path: Path, name: str = "auto", called: str | None = None) -> Format:
    """Return the format called ``name``, or the one that recognises the file. Errors call the file ``called``.

    Raises ``UnknownFormat``, and ``InvalidInput`` for a path that this format cannot read.
    """
    if not path.is_dir():
        require_file(path)
    chosen = detect(path, called) if name == "auto" else format_named(name)
    if not reads_folders(chosen):
        require_file(path)
    return chosen


def require_file(path: Path) -> None:
    """Raise ``InvalidInput`` unless the path is a file, and not a file of an open store."""
    if not path.exists():
        raise InvalidInput(f"{path} does not exist: check the path")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it")
    if is_open(path):
        raise InvalidInput(f"{path} belongs to an open store: name a transcript, or an export of the store")


def reads_folders(format: Format) -> bool:
    """Return whether a format reads a folder or zip as a whole."""
    return isinstance(format, FolderFormat) and format.folders


def detect(path: Path, called: str | None = None) -> Format:
    """Return the first format that recognises the file or folder. Raises ``UnknownFormat`` if none does."""
    head = b"" if path.is_dir() else read_head(path)
    known = formats_by_priority()
    for format in matching_formats(path, head, known):
        return format
    if path.is_dir():
        require_file(path)
    from .diagnosis import looks_like

    known_formats = _format_names(all_formats())
    raise UnknownFormat(
        f"{called or path} {looks_like(path, head)}; pass format= (--format) if its format is one of {known_formats}"
    )


def formats_by_priority() -> list[Format]:
    """Return all formats in the order in which they sniff a file."""
    known = all_formats()
    # Installed formats come first: the built-in ones are more general.
    third_party = [format for name, format in known.items() if name not in BUILT_IN]
    return [*third_party, *(known[name] for name in BUILT_IN)]


def matching_formats(path: Path, head: bytes, among: Iterable[Format]) -> Iterator[Format]:
    """Yield the formats that recognise a file that begins with ``head``, or a folder."""
    folder = path.is_dir()
    return (format for format in among if (reads_folders(format) or not folder) and format.sniff(path, head))


def read_head(path: Path) -> bytes:
    """Return the first ``HEAD_BYTES`` bytes of a file."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def format_named(name: str) -> Format:
    """Return the format of that name. Raises ``UnknownFormat``."""
    if isinstance(name, str) and name in BUILT_IN:
        return _built_in(name)
    known = all_formats()
    if not isinstance(name, str) or name not in known:
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise UnknownFormat(f"unknown transcript format {shown}: {_alternatives(name, known)}")
    return known[name]


def _alternatives(name: object, known: dict[str, Format]) -> str:
    text = str(name).lower()
    like = [_OTHER_NAMES[text]] if text in _OTHER_NAMES else get_close_matches(text, [*known, MEMORY_FILE_FORMAT], 1)
    return f"{f'did you mean {like[0]}? ' if like else ''}use one of {_format_names(known)}"


def _built_in(name: str) -> Format:
    return cast(Format, import_module(f"zettel.transcripts.formats.{_MODULES.get(name, name)}"))


def _format_names(known: dict[str, Format]) -> str:
    return ", ".join([*known, MEMORY_FILE_FORMAT])
