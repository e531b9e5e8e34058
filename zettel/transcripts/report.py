"""What became of the records of an import, as people and programs are told it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from pydantic import BaseModel, Field

from zettel.llm.estimate import Estimate
from zettel.model import Event, Remembered, Scope, Status

from . import Rejected
from .secret_shapes import Secret

OnRejected: TypeAlias = Callable[[Sequence[Rejected]], None]
"""Called with some records that cannot be stored, as soon as they were read."""

KEPT_REJECTIONS = 1_000
"""Rejected records that a report holds: enough to see what is wrong, and a bound where a whole file is."""


KEPT_SECRETS = 1_000
"""Places of secrets that a report holds, for the same reasons."""


class FileReport(BaseModel):
    """What became of one file's records, or of those of a folder or zip that was read as a whole."""

    file: str
    format: str
    added: int = 0
    existing: int = 0
    revised: int = 0
    deleted: int = 0
    rejected: int = 0
    left_out: int = 0


class ScopeReport(BaseModel):
    """What became of the records of one scope, where a rule says whose they are."""

    scope: Scope
    added: int = 0
    existing: int = 0
    revised: int = 0
    deleted: int = 0


class ImportReport(BaseModel):
    """What became of all records; after a dry run, what would become of them."""

    file: str
    format: str
    """Several, parted by commas, where a folder or zip holds several."""
    dry_run: bool = False
    """Whether nothing was stored."""
    added: int = 0
    existing: int = 0
    """Known before, with the same content."""
    revised: int = 0
    """Known before, with other content: the note has a new version now."""
    deleted: int = 0
    """Deleted from this scope once, and so left out."""
    left_out: int = 0
    """Not asked for: of another time or speaker."""
    flagged: int = 0
    """Of those written, how many hold what looks like instructions to a model."""
    redacted: dict[str, int] = Field(default_factory=dict)
    """What was taken out of the wanted records if that was asked, and how often: e-mail, phone, card, key."""
    secrets: list[Secret] = Field(default_factory=list)
    """The first 1,000 keys and passwords in the wanted records, by their shapes: of what kind and where. None
    where these were redacted."""
    secrets_found: int = 0
    """How many there are, in all."""
    rejected: list[Rejected] = Field(default_factory=list)
    """The first 1,000 records that cannot be stored; whoever wants all is told of them as they come."""
    rejections: int = 0
    """How many cannot be stored, in all."""
    unknown: list[str] = Field(default_factory=list)
    """Files in a folder or zip that no format knows."""
    files: list[FileReport] = Field(default_factory=list)
    """What was read, in order; of a whole memory nothing."""
    scopes: list[ScopeReport] = Field(default_factory=list)
    """By scope, where a rule says whose the records are."""
    first: datetime | None = None
    """When the first of the wanted records happened."""
    last: datetime | None = None
    speakers: dict[str, int] = Field(default_factory=dict)
    """How many of the wanted records each said, most first."""
    sessions: int = 0
    """Those that the wanted records are in."""
    seconds: float = 0.0
    estimate: Estimate | None = None
    """After a dry run: what a language model would be asked, if the memory has one."""
    llm_calls: int = 0
    """Times that a language model was asked while the import and its jobs ran; the command line fills these in."""
    llm_hits: int = 0
    """Questions that an answer from before served."""
    llm_tokens: int = 0
    llm_usd: float = 0.0

    @property
    def records(self) -> int:
        """How many records were read and wanted."""
        return self.added + self.existing + self.revised + self.deleted + self.rejections


class Tally:
    """Counts the records of an import into its report, while they are read."""

    def __init__(self, report: ImportReport, on_rejected: OnRejected | None = None) -> None:
        self._report = report
        self._on_rejected = on_rejected
        self._speakers: Counter[str] = Counter()
        self._sessions: set[int] = set()  # hashes: an import of years has very many
        self._scopes: dict[Scope, ScopeReport] = {}
        self.redacted: Counter[str] = Counter()
        """What was taken out of the records; whoever does it counts here."""

    def count(self, file: FileReport, done: Iterable[Remembered], scope: Scope | None) -> None:
        """What became of some events; ``scope`` is the one that a rule put them into."""
        statuses: Counter[Status] = Counter()
        for one in done:
            statuses[one.status] += 1
            self._report.flagged += one.flagged
        reports: list[FileReport | ScopeReport | ImportReport] = [file, self._report]
        if scope is not None:
            reports.append(self._scopes.setdefault(scope, ScopeReport(scope=scope)))
        for status, count in statuses.items():
            for report in reports:
                setattr(report, status, getattr(report, status) + count)

    def reject(self, file: FileReport, rejected: list[Rejected]) -> None:
        """Records that cannot be stored."""
        if not rejected:
            return
        file.rejected += len(rejected)
        self._report.rejections += len(rejected)
        self._report.rejected += rejected[: KEPT_REJECTIONS - len(self._report.rejected)]
        if self._on_rejected is not None:
            self._on_rejected(rejected)

    def leave_out(self, file: FileReport, count: int) -> None:
        """Records that nobody asked for."""
        file.left_out += count
        self._report.left_out += count

    def look_at(self, events: Iterable[Event]) -> None:
        """Who spoke when, and in which sessions."""
        report = self._report
        for event in events:
            if event.role is not None:
                self._speakers[event.role] += 1
            if event.session is not None:
                self._sessions.add(hash(event.session))
            if event.occurred_at is not None:
                report.first = min(report.first or event.occurred_at, event.occurred_at)
                report.last = max(report.last or event.occurred_at, event.occurred_at)

    def find(self, secrets: list[Secret]) -> None:
        """Keys and passwords in the records."""
        self._report.secrets_found += len(secrets)
        self._report.secrets += secrets[: KEPT_SECRETS - len(self._report.secrets)]

    def end(self) -> None:
        """What is known when all were counted."""
        self._report.speakers = dict(self._speakers.most_common())
        self._report.sessions = len(self._sessions)
        self._report.redacted = dict(self.redacted.most_common())
        self._report.scopes = list(self._scopes.values())
