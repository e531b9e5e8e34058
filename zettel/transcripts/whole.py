"""A whole memory as JSON lines: what ``zettel export --format zettel`` writes and any store takes in again.

Each line is one object with one record and, at its end, ``crc``: the CRC-32 of the line without it, begun with that of
the line before, so that a line that was changed, moved or lost is told by its number. (The first line stands for
itself: two exports of one memory differ in it alone.) In their order:

* ``zettel``: version of the format, and which zettel wrote it, when;
* ``vectors``: a vector set that the notes refer to by its number: its embedder and recipe;
* ``scope``: whose memory follows, its secret (hexadecimal), its last ``seq`` and recorded time;
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

from zettel.batch import PutEvent, PutJob, PutMention, PutNoteUse, PutTombstones, RestoreLinks
from zettel.errors import BadRecord
from zettel.identity import new_id
from zettel.model import (
    TIME_MIN,
    EventRecord,
    Job,
    JobKind,
    Link,
    Note,
    NoteUse,
    Revision,
    Scope,
    from_micros,
    to_micros,
)  # fmt: skip
from zettel.ports import KeptNote, ScopeState, Space
from zettel.transcripts import WHOLE

if TYPE_CHECKING:
    from zettel.ports import Kept

name = WHOLE
HEAD_BYTES = 64
"""Enough to see whether it is such a file, before a line of it is read that may be any length."""
VERSION = 2
"""Of the format; a reader refuses what a later one wrote, and reads what earlier ones did."""

_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n')
_CRC_BYTES = len(b',"crc":"00000000"}\n')
_JOB = ("kind", "note", "version", "priority", "run_at", "attempts", "state", "error")
"""What is told of a job; its id is of the store that it waits in."""
_OF_STORES = frozenset({JobKind.REEMBED, JobKind.PURGE})
"""Jobs that nobody may bring into a store that is shared."""


def sniff(path: Path, head: bytes) -> bool:
    """Whether a file begins as a whole memory does."""
    return head.startswith(b'{"zettel":')


# ------------------------------------------------------------------------------------------------------------- writing


class Lines:
    """Records as lines, each with its checksum."""

    def __init__(self) -> None:
        self._last = 0
        self.count = 0

    def header(self, written_by: str) -> bytes:
        """The first line."""
        told = {"version": VERSION, "written_by": written_by, "at": datetime.now(timezone.utc).isoformat()}
        line = self.line(_compact({"zettel": told}))
        self._last = 0
        return line

    def end(self) -> bytes:
        """The last line."""
        return self.line(_compact({"end": {"lines": self.count + 1}}))

    def line(self, record: str) -> bytes:
        """A JSON object as the next line."""
        said = record[:-1].encode()
        self._last = zlib.crc32(said, self._last)
        self.count += 1
        return b'%b,"crc":"%08x"}\n' % (said, self._last)


def vectors_record(number: int, space: Space) -> str:
    """A vector set, under the number that notes call it by."""
    told = {"set": number, "embedder": space.name, "dim": space.dim, "fingerprint": space.fingerprint}
    return _compact({"vectors": {**told, "recipe": space.recipe}})


def record(kept: Kept, scope: Scope, sets: dict[int, int]) -> Iterator[str]:
    """What is kept of a scope, as records; ``sets`` gives the number of each of the store's vector sets."""
    if isinstance(kept, ScopeState):
        recorded_at = None if kept.recorded_at == TIME_MIN else kept.recorded_at
        state = {"secret": kept.secret.hex(), "seq": kept.seq, "recorded_at": recorded_at}
        yield _compact({"scope": scope.model_dump() | state})
    elif isinstance(kept, PutEvent):
        yield f'{{"event":{_json(kept.event)},"identity":"{kept.identity}"}}'
    elif isinstance(kept, KeptNote):
        revisions = ",".join(_json(revision, "live") for revision in kept.revisions)
        vectors = {str(sets[space]): _packed(vector) for space, vector in kept.vectors if space in sets}
        base = _json(kept.base, "valid_to")
        yield f'{{"note":{base},"revisions":[{revisions}],"vectors":{_compact(vectors)}}}'
    elif isinstance(kept, RestoreLinks):
        yield f'{{"links":[{",".join(map(_json, kept.links))}],"of":"{kept.owner}"}}'
    elif isinstance(kept, PutMention):
        yield f'{{"mention":{_json(kept.link)}}}'
    elif isinstance(kept, PutTombstones):
        for identity in kept.identities:
            yield f'{{"tombstone":"{identity}"}}'
    elif isinstance(kept, PutNoteUse):
        counts = kept.use._asdict() | {"since": to_micros(kept.use.since)}
        yield _compact({"use": counts, "of": kept.note})
    elif kept.job.note is not None:  # others are about the store, and not about what is kept in it
        yield _compact({"job": kept.job.model_dump(mode="json", include=set(_JOB))})


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


class Part(NamedTuple):
    """One scope of a file: whose it was and how it stood, and where its records are.

    They begin at byte ``offset``, which is line ``line`` counted from 1, and are ``lines`` many.
    """

    scope: Scope
    state: ScopeState
    offset: int
    line: int
    lines: int


class Outline(NamedTuple):
    """What a file holds: vector sets by number (their ``id``), and scopes."""

    sets: tuple[Space, ...]
    parts: tuple[Part, ...]


def outline(path: Path) -> Outline:
    """Read a file through, without taking any of it in. Raises ``BadRecord`` unless it is whole and undamaged."""
    sets: list[Space] = []
    parts: list[Part] = []
    last, offset, number, ended = 0, 0, 0, False
    with path.open("rb") as file:
        if not sniff(path, file.read(HEAD_BYTES)):
            raise BadRecord(f"{path}:1: no whole memory: `zettel export --format zettel` writes one")
        file.seek(0)
        for number, line in enumerate(file, start=1):
            where = f"{path}:{number}"
            if ended:
                raise BadRecord(f"{where}: something stands after the end; nothing was imported")
            last = _checked(line, last, where)
            offset += len(line)
            if number == 1:
                _require_version(line, where)
                last = 0
            elif line.startswith(b'{"vectors"'):
                with _making_sense(where):
                    sets.append(_space(json.loads(line)["vectors"]))
            elif line.startswith(b'{"scope"'):
                with _making_sense(where):
                    parts.append(_part(json.loads(line)["scope"], offset, number + 1))
            elif line.startswith(b'{"end"'):
                ended = True
            elif parts:
                parts[-1] = parts[-1]._replace(lines=parts[-1].lines + 1)
    if not ended:
        raise BadRecord(f"{path}:{number}: the file is cut off after this line; copy or export it again")
    return Outline(tuple(sets), tuple(parts))


def read(path: Path, part: Part, into: Scope, sets: Iterable[Space]) -> Iterator[Kept]:
    """The records of one scope, to be kept in the scope ``into``; ``sets`` are the file's.

    Raises ``BadRecord`` at one that makes no sense.
    """
    dims = {space.id: space.dim for space in sets}
    with path.open("rb") as file:
        file.seek(part.offset)
        for number in range(part.line, part.line + part.lines):
            with _making_sense(f"{path}:{number}"):
                kept = _kept(json.loads(file.readline()), into, dims)
            yield kept


@contextmanager
def _making_sense(where: str) -> Iterator[None]:
    """What a record lacks, or has too much, becomes one line with its place."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        told = ".".join(map(str, first["loc"]))
        raise BadRecord(f"{where}: {told}: {first['msg']}; nothing was imported") from None
    except KeyError as error:
        raise BadRecord(f"{where}: {error} is missing in this record; nothing was imported") from None
    except (TypeError, AttributeError, ValueError, RecursionError) as error:
        raise BadRecord(f"{where}: no record of a whole memory ({error}); nothing was imported") from None


def _checked(line: bytes, last: int, where: str) -> int:
    """The line's checksum, if it is right."""
    if not line.endswith(b"\n"):
        raise BadRecord(f"{where}: the file is cut off in this line; copy or export it again")
    told = _CRC.fullmatch(line[-_CRC_BYTES:])
    crc = zlib.crc32(line[:-_CRC_BYTES], last)
    if told is None or int(told[1], 16) != crc:
        raise BadRecord(
            f"{where}: the line is damaged, or one before it is missing (its checksum is wrong); "
            "copy or export the file again"
        )
    return crc


def _require_version(line: bytes, where: str) -> None:
    with _making_sense(where):
        version = json.loads(line)["zettel"]["version"]
    if version not in range(1, VERSION + 1):
        raise BadRecord(
            f"{where}: version {version} of the format, and this zettel reads up to version {VERSION}: use the zettel "
            "that wrote it, or a newer one"
        )


def _part(told: dict[str, Any], offset: int, line: int) -> Part:
    scope = Scope(tenant=told["tenant"], user=told["user"], agent=told["agent"])
    recorded_at = TIME_MIN if told["recorded_at"] is None else told["recorded_at"]
    return Part(scope, ScopeState(told["seq"], bytes.fromhex(told["secret"]), recorded_at, TIME_MIN), offset, line, 0)


def _space(told: dict[str, Any]) -> Space:
    return Space(told["set"], told["embedder"], told["dim"], told["fingerprint"], told["recipe"], active=False)


def _kept(told: dict[str, Any], into: Scope, dims: Mapping[int, int]) -> Kept:
    if "event" in told:
        return PutEvent(EventRecord.model_validate(told["event"]), told["identity"])
    if "note" in told:
        return KeptNote(
            Note.model_validate(told["note"]),
            tuple(Revision.model_validate(revision) for revision in told["revisions"]),
            tuple((int(number), _unpacked(vector, dims[int(number)])) for number, vector in told["vectors"].items()),
        )
    if "links" in told:
        return RestoreLinks(told["of"], tuple(Link.model_validate(link) for link in told["links"]))
    if "mention" in told:
        return PutMention(Link.model_validate(told["mention"]))
    if "tombstone" in told:
        return PutTombstones((told["tombstone"],))
    if "use" in told:
        since, *counts = (int(told["use"][name]) for name in NoteUse._fields)
        return PutNoteUse(told["of"], NoteUse(from_micros(since), *counts))
    job = Job.model_validate({**told["job"], "id": new_id("j"), "scope": into})
    if job.note is None or job.kind in _OF_STORES:
        raise ValueError(f"a job to {job.kind.value} is about a store and not about a note")
    return PutJob(job)


def _unpacked(text: str, dim: int) -> Any:
    vector = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    if len(vector) != dim:
        raise ValueError(f"a vector of {len(vector)} numbers in a set of {dim}")
    return vector
