"""Import reports and the counters that fill them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel, Field

from zettel.model import Estimate, Event, Remembered, Scope, Status

from . import Rejected

OnRejected: TypeAlias = Callable[[Sequence[Rejected]], None]
"""Called with rejected records as soon as they are read."""

MAX_REJECTED_RECORDS = 1_000
"""Rejected records that a report contains at most."""


MAX_SECRETS = 1_000
"""Locations of secrets that a report contains at most."""


class Secret(NamedTuple):
    """Kind and place of a record with a secret; never the secret itself."""

    kind: str
    file: str
    position: str


class FileReport(BaseModel):
    """Counts of one file, or of a folder or zip that one format reads as a whole."""

    file: str
    format: str
    added: int = 0
    existing: int = 0
    revised: int = 0
    deleted: int = 0
    rejected: int = 0
    skipped: int = 0


class ScopeReport(BaseModel):
    """Counts of one scope, with ``scope_by``."""

    scope: Scope
    added: int = 0
    existing: int = 0
    revised: int = 0
    deleted: int = 0


class ImportReport(BaseModel):
    """Counts of all records; after a dry run, the expected counts."""

    file: str
    format: str
    """Comma-separated if a folder or zip contains several formats."""
    dry_run: bool = False
    """Whether nothing was stored."""
    added: int = 0
    existing: int = 0
    """Already stored with the same content."""
    revised: int = 0
    """Already stored with other content: the note has a new version."""
    deleted: int = 0
    """Not stored, because somebody deleted them from this scope."""
    skipped: int = 0
    """Not selected: of another time or speaker; or repeated in the file, or empty."""
    foreign_ids: int = 0
    """Records with the id of a stored event of another sender or file: they are stored separately."""
    unapplied_edits: int = 0
    """Edited files of notes that this memory has, which are not imported without ``edits=True``."""
    flagged: int = 0
    """Written records whose text looks like instructions to a model."""
    redacted: dict[str, int] = Field(default_factory=dict)
    """Redactions in the selected records by kind: e-mail, phone, card, key; or kinds of secrets, such as JWT."""
    secrets: list[Secret] = Field(default_factory=list)
    """Location of the first 1,000 secrets in the selected records, by kind; empty if they were redacted."""
    secrets_found: int = 0
    """The number of secrets found: kinds per record."""
    rejected_records: list[Rejected] = Field(default_factory=list)
    """The first 1,000 rejected records; ``on_rejected`` receives all of them."""
    rejected: int = 0
    """The number of records that cannot be stored."""
    unknown_files: list[str] = Field(default_factory=list)
    """Files in a folder or zip that no format recognises."""
    files: list[FileReport] = Field(default_factory=list)
    """Counts by file, in order; empty for a memory file."""
    scopes: list[ScopeReport] = Field(default_factory=list)
    """Counts by scope, with ``scope_by``."""
    first: datetime | None = None
    """The earliest ``occurred_at`` of the selected records."""
    last: datetime | None = None
    speakers: dict[str, int] = Field(default_factory=dict)
    """Selected records by speaker, most first."""
    sessions: int = 0
    """The number of sessions of the selected records."""
    seconds: float = 0.0
    estimate: Estimate | None = None
    """After a dry run with a language model: the expected calls."""
    llm_calls: int = 0
    """Language model calls during the import and its jobs; the command line sets these counts."""
    llm_hits: int = 0
    """Calls answered from the cache."""
    llm_tokens: int = 0
    llm_usd: float = 0.0

    @property
    def records(self) -> int:
        """The number of selected records."""
        return self.added + self.existing + self.revised + self.deleted + self.rejected


class ImportCounter:
    """Counts the records of an import into its report."""

    def __init__(self, report: ImportReport, on_rejected: OnRejected | None = None) -> None:
        self._report = report
        self._on_rejected = on_rejected
        self._speakers: Counter[str] = Counter()
        self._sessions: set[int] = set()  # hashes: an import of years has very many
        self._scopes: dict[Scope, ScopeReport] = {}
        self.redacted: Counter[str] = Counter()
        """Redactions by kind; the redactor counts them here."""

    def count(self, file: FileReport, done: Iterable[Remembered], scope: Scope | None) -> None:
        """Count the results of some events; ``scope`` is their scope with ``scope_by``."""
        statuses: Counter[Status] = Counter()
        for result in done:
            statuses[result.status] += 1
            self._report.flagged += result.flagged
        reports: list[FileReport | ScopeReport | ImportReport] = [file, self._report]
        if scope is not None:
            reports.append(self._scopes.setdefault(scope, ScopeReport(scope=scope)))
        for status, count in statuses.items():
            for report in reports:
                setattr(report, status, getattr(report, status) + count)

    def reject(self, file: FileReport, rejected: list[Rejected]) -> None:
        """Count rejected records."""
        if not rejected:
            return
        file.rejected += len(rejected)
        self._report.rejected += len(rejected)
        self._report.rejected_records += rejected[: MAX_REJECTED_RECORDS - len(self._report.rejected_records)]
        if self._on_rejected is not None:
            self._on_rejected(rejected)

    def skip(self, file: FileReport, count: int) -> None:
        """Count skipped records."""
        file.skipped += count
        self._report.skipped += count

    def observe(self, events: Iterable[Event]) -> None:
        """Count speakers and sessions, and extend the time span."""
        report = self._report
        for event in events:
            if event.speaker is not None:
                self._speakers[event.speaker] += 1
            if event.session is not None:
                self._sessions.add(hash(event.session))
            if event.occurred_at is not None:
                report.first = min(report.first or event.occurred_at, event.occurred_at)
                report.last = max(report.last or event.occurred_at, event.occurred_at)

    def find(self, secrets: list[Secret]) -> None:
        """Add the keys and passwords found in the records."""
        self._report.secrets_found += len(secrets)
        self._report.secrets += secrets[: MAX_SECRETS - len(self._report.secrets)]

    def end(self) -> None:
        """Write the totals into the report."""
        self._report.speakers = dict(self._speakers.most_common())
        self._report.sessions = len(self._sessions)
        self._report.redacted = dict(self.redacted.most_common())
        self._report.scopes = list(self._scopes.values())
