"""Memory files: whole scopes as JSON lines, which ``zettel export --format zettel`` writes and any store imports.

Each line is an object with one record. Its last field is ``crc``: the CRC-32 of the line without it, started from the
CRC-32 of the line before. So a changed, moved or lost line is reported by number. (The second line starts from zero:
two exports of one memory differ only in the first line.) The records, in order:

* ``zettel``: version of the format, and which zettel wrote it, when;
* ``vectors``: a vector set that the notes refer to by its number: its embedder and recipe;
* ``scope``: whose memory follows, its secret (hexadecimal), its last ``seq`` and recorded time, and its ``retention``
  (since version 3);
* ``event`` with its keyed ``identity``; ``note`` (version 1) with its ``revisions`` and its ``vectors`` by set
  (base64 of little-endian float32); ``links`` that the note ``of`` decided; ``mention``; ``tombstone``; ``use`` that
  feedback tells of a note (since version 2); ``job``;
* ``end``: the last line; a file without it was cut off.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from zettel.core.identity import new_id
from zettel.errors import BadRecord
from zettel.model import (
    TIME_MAX,
    TIME_MIN,
    EventRecord,
    Job,
    JobKind,
    Link,
    Note,
    NoteUse,
    Retention,
    Revision,
    Scope,
    from_micros,
    to_micros,
    with_speaker,
)  # fmt: skip
from zettel.ports import NoteRecord, ScopeState, VectorSet
from zettel.ports.operations import PutEvent, PutJob, PutMention, PutNoteUse, PutTombstones, RestoreLinks

if TYPE_CHECKING:
    from zettel.ports.store import ScopeRecord

name = "zettel"
HEAD_BYTES = 64
"""Bytes that ``sniff`` reads: lines have no length limit."""
VERSION = 3
"""Format version; a reader accepts earlier versions and refuses later ones."""

_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n')
_CRC_BYTES = len(b',"crc":"00000000"}\n')
_JOB = ("kind", "note", "version", "priority", "run_at", "attempts", "state", "error")
"""Fields of a job in a file; its id belongs to its store."""
_OF_STORES = frozenset({JobKind.REEMBED, JobKind.PURGE})
"""Jobs that no file may bring into a shared store."""


def sniff(path: Path, head: bytes) -> bool:
    """Return whether a file begins as a memory file."""
    return head.startswith(b'{"zettel":')


# ------------------------------------------------------------------------------------------------------------- writing


class LineWriter:
    """Writes records as lines with checksums."""

    def __init__(self) -> None:
        self._last = 0
        self.count = 0

    def header(self, written_by: str) -> bytes:
        """Return the first line."""
        fields = {"version": VERSION, "written_by": written_by, "at": datetime.now(timezone.utc).isoformat()}
        line = self.line(_compact({"zettel": fields}))
        self._last = 0
        return line

    def end(self) -> bytes:
        """Return the last line."""
        return self.line(_compact({"end": {"lines": self.count + 1}}))

    def line(self, record: str) -> bytes:
        """Return a JSON object as the next line."""
        body = record[:-1].encode()
        self._last = zlib.crc32(body, self._last)
        self.count += 1
        return b'%b,"crc":"%08x"}\n' % (body, self._last)


def vectors_record(number: int, space: VectorSet) -> str:
    """Return the record of a vector set with its number in this file."""
    fields = {"set": number, "embedder": space.name, "dim": space.dim, "fingerprint": space.fingerprint}
    return _compact({"vectors": {**fields, "recipe": space.recipe}})


def record(item: ScopeRecord, scope: Scope, sets: dict[int, int]) -> Iterator[str]:
    """Yield the records of a stored item; ``sets`` maps the store's vector sets to their numbers."""
    if isinstance(item, ScopeState):
        recorded_at = None if item.recorded_at == TIME_MIN else item.recorded_at
        state = {"secret": item.secret.hex(), "seq": item.seq, "recorded_at": recorded_at}
        if item.retention is not None:
            state["retention"] = item.retention.model_dump(mode="json")
        yield _compact({"scope": scope.model_dump() | state})
    elif isinstance(item, PutEvent):
        yield f'{{"event":{_json(item.event)},"identity":"{item.identity}"}}'
    elif isinstance(item, NoteRecord):
        revisions = ",".join(_json(revision, "live") for revision in item.revisions)
        vectors = {str(sets[space]): _packed(vector) for space, vector in item.vectors if space in sets}
        base = _json(item.base, "valid_to")
        yield f'{{"note":{base},"revisions":[{revisions}],"vectors":{_compact(vectors)}}}'
    elif isinstance(item, RestoreLinks):
        yield f'{{"links":[{",".join(map(_json, item.links))}],"of":"{item.owner}"}}'
    elif isinstance(item, PutMention):
        yield f'{{"mention":{_json(item.link)}}}'
    elif isinstance(item, PutTombstones):
        for identity in item.identities:
            yield f'{{"tombstone":"{identity}"}}'
    elif isinstance(item, PutNoteUse):
        counts = item.use._asdict() | {"since": to_micros(item.use.since)}
        yield _compact({"use": counts, "of": item.note})
    elif _is_of_scope(item.job):
        yield _compact({"job": item.job.model_dump(mode="json", include=set(_JOB))})


def _is_of_scope(job: Job) -> bool:
    """Return whether a job concerns its scope alone: other jobs without a note concern the store."""
    return job.note is not None or job.kind is JobKind.EXPIRE


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _json(value: BaseModel, *without: str) -> str:
    left_out = set(without)
    try:
        return value.model_dump_json(exclude=left_out)
    except PydanticSerializationError:  # a payload's lone surrogates: JSON can escape them, UTF-8 cannot hold them
        return json.dumps(value.model_dump(exclude=left_out), default=datetime.isoformat, separators=(",", ":"))


def _packed(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


# ------------------------------------------------------------------------------------------------------------- reading


class ScopePart(NamedTuple):
    """One scope of a file: its state and the position of its records.

    The records begin at byte ``offset`` on line ``line`` (from 1) and take ``lines`` lines.
    """

    scope: Scope
    state: ScopeState
    offset: int
    line: int
    lines: int


class FileIndex(NamedTuple):
    """The contents of a file: vector sets (their ``id`` is the number) and scopes."""

    sets: tuple[VectorSet, ...]
    parts: tuple[ScopePart, ...]


def read_index(path: Path) -> FileIndex:
    """Check a whole file without importing it. Raises ``BadRecord`` if it is damaged or truncated."""
    sets: list[VectorSet] = []
    parts: list[ScopePart] = []
    last, offset, number, ended = 0, 0, 0, False
    with path.open("rb") as file:
        if not sniff(path, file.read(HEAD_BYTES)):
            raise BadRecord(f"{path}:1: this is not a memory file: write one with `zettel export --format zettel`")
        file.seek(0)
        for number, line in enumerate(file, start=1):
            where = f"{path}:{number}"
            if ended:
                raise BadRecord(f"{where}: nothing may follow the end record: export the file again")
            last = _checked(line, last, where)
            offset += len(line)
            if number == 1:
                _require_version(line, where)
                last = 0
            elif line.startswith(b'{"vectors"'):
                with _record_errors(where):
                    sets.append(_space(json.loads(line)["vectors"]))
            elif line.startswith(b'{"scope"'):
                with _record_errors(where):
                    parts.append(_part(json.loads(line)["scope"], offset, number + 1))
            elif line.startswith(b'{"end"'):
                ended = True
            elif parts:
                parts[-1] = parts[-1]._replace(lines=parts[-1].lines + 1)
    if not ended:
        raise BadRecord(f"{path}:{number}: the file is truncated after this line: copy or export it again")
    return FileIndex(tuple(sets), tuple(parts))


def read(path: Path, part: ScopePart, into: Scope, sets: Iterable[VectorSet]) -> Iterator[ScopeRecord]:
    """Yield the records of one scope for the scope ``into``; ``sets`` are the vector sets of the file.

    Raises ``BadRecord`` at an invalid record.
    """
    dims = {space.id: space.dim for space in sets}
    with path.open("rb") as file:
        file.seek(part.offset)
        for number in range(part.line, part.line + part.lines):
            with _record_errors(f"{path}:{number}"):
                item = _decode(json.loads(file.readline()), into, dims)
            yield item


def texts_of(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield number and fields of each line of a file that ``read_index`` has checked, without vectors and checksums.

    Raises ``BadRecord``.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            with _record_errors(f"{path}:{number}"):
                fields = json.loads(line)
            yield number, {name: value for name, value in fields.items() if name not in ("vectors", "crc")}


@contextmanager
def _record_errors(where: str) -> Iterator[None]:
    """Turn validation errors of a record into ``BadRecord`` with its position."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        fields = ".".join(map(str, first["loc"]))
        raise BadRecord(f"{where}: {fields}: {first['msg']}; nothing was imported") from None
    except KeyError as error:
        raise BadRecord(f"{where}: {error} is missing in this record; nothing was imported") from None
    except (TypeError, AttributeError, ValueError, RecursionError) as error:
        raise BadRecord(f"{where}: invalid record ({error}); nothing was imported: export it again") from None


def _checked(line: bytes, last: int, where: str) -> int:
    """Return the line's checksum. Raises ``BadRecord`` if it is wrong."""
    if not line.endswith(b"\n"):
        raise BadRecord(f"{where}: the file is truncated in this line: copy or export it again")
    fields = _CRC.fullmatch(line[-_CRC_BYTES:])
    crc = zlib.crc32(line[:-_CRC_BYTES], last)
    if fields is None or int(fields[1], 16) != crc:
        raise BadRecord(
            f"{where}: the line is damaged, or one before it is missing (its checksum is wrong); "
            "copy or export the file again"
        )
    return crc


def _require_version(line: bytes, where: str) -> None:
    with _record_errors(where):
        version = json.loads(line)["zettel"]["version"]
    if version not in range(1, VERSION + 1):
        raise BadRecord(
            f"{where}: version {version} of the format is newer than version {VERSION}, which this zettel reads: "
            "use the zettel that wrote it, or a newer one"
        )


def _part(fields: dict[str, Any], offset: int, line: int) -> ScopePart:
    scope = Scope(tenant=fields["tenant"], user=fields["user"], agent=fields["agent"])
    recorded_at = TIME_MIN if fields["recorded_at"] is None else fields["recorded_at"]
    given = fields.get("retention")
    retention = None if given is None else Retention.model_validate(given)
    secret = bytes.fromhex(fields["secret"])
    state = ScopeState(fields["seq"], secret, recorded_at, TIME_MIN, TIME_MAX, retention)
    return ScopePart(scope, state, offset, line, 0)


def _space(fields: dict[str, Any]) -> VectorSet:
    return VectorSet(
        fields["set"], fields["embedder"], fields["dim"], fields["fingerprint"], fields["recipe"], active=False
    )


def _decode(fields: dict[str, Any], into: Scope, dims: Mapping[int, int]) -> ScopeRecord:
    if "event" in fields:
        return PutEvent(EventRecord.model_validate(with_speaker(fields["event"])), fields["identity"])
    if "note" in fields:
        return NoteRecord(
            Note.model_validate(with_speaker(fields["note"])),
            tuple(Revision.model_validate(revision) for revision in fields["revisions"]),
            tuple((int(number), _unpacked(vector, dims[int(number)])) for number, vector in fields["vectors"].items()),
        )
    if "links" in fields:
        return RestoreLinks(fields["of"], tuple(Link.model_validate(link) for link in fields["links"]))
    if "mention" in fields:
        return PutMention(Link.model_validate(fields["mention"]))
    if "tombstone" in fields:
        return PutTombstones((fields["tombstone"],))
    if "use" in fields:
        since, *counts = (int(fields["use"][name]) for name in NoteUse._fields)
        return PutNoteUse(fields["of"], NoteUse(from_micros(since), *counts))
    job = Job.model_validate({**fields["job"], "id": new_id("j"), "scope": into})
    if not _is_of_scope(job) or job.kind in _OF_STORES:
        raise ValueError(f"a job to {job.kind.value} concerns a store, not a note")
    return PutJob(job)


def _unpacked(text: str, dim: int) -> Any:
    vector = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    if len(vector) != dim:
        raise ValueError(f"a vector of {len(vector)} numbers in a set of {dim}")
    return vector
