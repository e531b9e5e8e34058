"""What of a transcript is imported, and how it is read."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import PurePath
from typing import NamedTuple, TypeAlias, cast
from zoneinfo import ZoneInfo

from zettel.arguments import Time, moment_of, require_storable, require_text, some
from zettel.errors import InvalidInput
from zettel.model import Event, Source

from . import Record, Rejected
from .by_scope import ScopeBy, Taken, whose
from .gaps import Gaps
from .locomo import CONVERSATION
from .moments import in_zone
from .own_notes import Written
from .parts import Part, Transcript, read, takes_columns
from .redaction import MARK, Redactor, require_region

Chosen: TypeAlias = Taken | Rejected | None
"""An event, a record that cannot be stored, or None for one that was not wanted."""


class Wanted(NamedTuple):
    """What the caller of an import asks for; see ``AsyncMemory.import_transcript``."""

    conversation: str | None = None
    zone: tzinfo | None = None
    columns: Mapping[str, str] = {}
    since: datetime | None = None
    until: datetime | None = None
    speakers: frozenset[str] = frozenset()
    """Case folded; none means everybody."""
    names: Mapping[str, str] = {}
    gap: timedelta | None = None
    """None: as the format has it."""
    redact: bool = False
    region: str | None = None
    """Whose phone numbers are taken out also where they do not tell their country."""
    scope_by: ScopeBy | None = None

    def require_fit(self, transcript: Transcript) -> None:
        """Raises ``InvalidInput`` where columns are named and nothing is a table."""
        if self.columns and not any(takes_columns(part.format) for part in transcript.parts):
            raise InvalidInput(f"columns are for tables (csv, parquet), and this is {transcript.format}")

    def records(self, part: Part, redactor: Redactor | None = None) -> Generator[Chosen, None, None]:
        """Those of a part in order, each as it is to be stored, which ``redactor`` has a say in.

        Raises ``BadRecord`` where no more can be read.
        """
        where = part.where if redactor is None else redactor.file(part.where)
        gaps = Gaps.of(part._replace(where=where), self.gap, self.zone or timezone.utc)
        for record in read(part, self.zone, self.columns):
            if self.conversation is not None and not _belongs(record, self.conversation):
                continue
            if isinstance(record, Rejected):
                yield record if redactor is None else redactor.rejected(record)
                continue
            event = record
            if event.role is not None and event.role in self.names:
                event = event.model_copy(update={"role": self.names[event.role]})
            has = self._has(event)
            # Before anything is left out: what is asked for now changes no session.
            if redactor is not None:
                cleaned = redactor.event(event, counted=has)
                if isinstance(cleaned, Rejected):
                    yield cleaned
                    continue
                event = cleaned
                if isinstance(event, Written):
                    event = event.model_copy(update={"file": event.file.cleaned(redactor.text)})
            user = whose(event, self.scope_by, PurePath(where).stem)
            event = gaps.placed(event) if gaps is not None else event
            if not has:
                yield None
            elif user is not None and redactor is not None and MARK.search(user):
                yield _nobodys(event, self.scope_by, user, where)
            else:
                yield Taken(event, user)

    def _has(self, event: Event) -> bool:
        at = event.occurred_at
        if self.since is not None and (at is None or at < self.since):
            return False
        if self.until is not None and (at is None or at >= self.until):
            return False
        return not self.speakers or (event.role is not None and event.role.casefold() in self.speakers)


def wanted(
    conversation: str | None = None,
    tz: str | None = None,
    columns: Mapping[str, str] | None = None,
    since: Time | None = None,
    until: Time | None = None,
    speakers: Iterable[str] | None = None,
    map_user: Mapping[str, str] | None = None,
    session_gap: float | None = None,
    redact: bool = False,
    redact_region: str | None = None,
    scope_by: str | None = None,
) -> Wanted:
    """What a caller asks for, checked; raises ``InvalidInput``, and ``MissingExtra`` where nothing can be redacted."""
    for name, text in (("tz", tz), ("redact_region", redact_region)):
        require_storable(name, text)
    for name, table in (("columns", columns), ("map_user", map_user)):
        if table is not None and not isinstance(table, Mapping):
            raise InvalidInput(f"{name}={table!r}: hand in a dict of names, as {{'this': 'that'}}")
    wanted_speakers = some("speakers", speakers)
    for speaker in wanted_speakers:
        require_text("speakers", speaker)
    region = redact_region.upper() if redact_region is not None else None
    if redact or region is not None:
        require_region(region)
    if scope_by not in (None, "user", "channel"):
        raise InvalidInput(f"scope_by={scope_by!r} is no rule: use user or channel")
    for name in (map_user or {}).values():
        require_text("map_user", name)
        if not name.strip():
            raise InvalidInput("map_user: a name cannot be empty")
    zone = _zone(tz)
    return Wanted(
        conversation=conversation,
        zone=zone,
        columns=dict(columns or {}),
        since=_moment("since", since, zone),
        until=_moment("until", until, zone),
        speakers=frozenset(name.casefold() for name in wanted_speakers),
        names=dict(map_user or {}),
        gap=_gap(session_gap),
        redact=redact or region is not None,
        region=region,
        scope_by=cast("ScopeBy | None", scope_by),
    )


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # of no such zone; of a name like ../x; of one that is a folder of zones
        raise InvalidInput(f"there is no time zone {name!r}; they are called as Europe/Oslo is") from None


def _moment(name: str, value: Time | None, zone: tzinfo | None) -> datetime | None:
    """A moment; one that names no zone is in ``zone``."""
    moment = moment_of(name, value)
    return moment if moment is None or value is None or zone is None else in_zone(value, moment, zone)


def _gap(hours: float | None) -> timedelta | None:
    if hours is None:
        return None
    if not (isinstance(hours, (int, float)) and math.isfinite(hours) and hours >= 0):
        raise InvalidInput(f"session_gap={hours!r} is no number of hours: 6 is one, and 0 means no sessions by time")
    try:
        return timedelta(hours=hours)
    except OverflowError:
        raise InvalidInput(f"session_gap={hours!r} is longer than any calendar") from None


def _nobodys(event: Event, rule: ScopeBy | None, user: str, file: str) -> Rejected:
    """Two people behind one mark must not share a memory."""
    source = event.source or Source(file=file)
    what = "who said it" if rule == "user" else "where it was said"
    way = "map_user can give a name" if rule == "user" else "what it is called has to be changed before"
    reason = f"{what} is {user} once redacted, and no scope of its own: {way}"
    return Rejected(file=source.file, position=source.position or "", reason=reason)


def _belongs(record: Record, conversation: str) -> bool:
    """Whether it is of the conversation; a rejected record's position says so."""
    if isinstance(record, Rejected):
        return record.position.startswith(f"{conversation}/")
    return record.metadata.get(CONVERSATION) == conversation
