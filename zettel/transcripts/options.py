"""Options of an import: which records to read, and how."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import PurePath
from typing import NamedTuple, TypeAlias, cast

from zettel.core.arguments import Time, moment_of, names_of, require_storable, require_text, zone_of
from zettel.errors import InvalidInput
from zettel.model import Event, Source

from . import Record, Rejected
from .formats.locomo import CONVERSATION
from .parsing.timestamps import in_zone
from .records import rejected
from .redaction import MARK, Redactor, require_region
from .scopes import ScopeBy, ScopedEvent, owner_of
from .sessions import SessionSplitter
from .sources import Transcript, TranscriptPart, read, takes_columns
from .vault_notes import VaultEvent

Selected: TypeAlias = ScopedEvent | Rejected | None
"""A selected event, a rejected record, or None for a skipped one."""


class ImportOptions(NamedTuple):
    """Validated options of an import; see ``AsyncMemory.import_transcript``."""

    conversation: str | None = None
    zone: tzinfo | None = None
    columns: Mapping[str, str] = {}
    since: datetime | None = None
    until: datetime | None = None
    speakers: frozenset[str] = frozenset()
    """Case-folded names; an empty set selects every speaker."""
    names: Mapping[str, str] = {}
    gap: timedelta | None = None
    """None uses the default of the format."""
    redact: bool = False
    region: str | None = None
    """The region whose national phone numbers are redacted too."""
    scope_by: ScopeBy | None = None
    edits: bool = False
    """Lets records change what is stored under their id, whatever file they come from."""

    def check_columns(self, transcript: Transcript) -> None:
        """Raise ``InvalidInput`` if columns are named and no part is a table."""
        if self.columns and not any(takes_columns(part.format) for part in transcript.parts):
            raise InvalidInput(f"columns requires a table (csv, parquet), got {transcript.format}: leave columns out")

    def records(self, part: TranscriptPart, redactor: Redactor | None = None) -> Generator[Selected, None, None]:
        """Yield the records of a part in order, redacted by ``redactor`` and placed in sessions.

        Raises ``BadRecord`` if the rest of the part cannot be read.
        """
        label = part.where if redactor is None else redactor.file(part.where)
        splitter = SessionSplitter.for_part(part._replace(where=label), self.gap, self.zone or timezone.utc)
        for record in read(part, self.zone, self.columns):
            if record is None:
                yield None
                continue
            if self.conversation is not None and not _is_in_conversation(record, self.conversation):
                continue
            if isinstance(record, Rejected):
                yield record if redactor is None else redactor.rejected(record)
                continue
            event = record
            if event.speaker is not None and event.speaker in self.names:
                event = event.model_copy(update={"speaker": self.names[event.speaker]})
            is_selected = self._is_selected(event)
            # Sessions are split before records are skipped, so that options do not change session names.
            if redactor is not None:
                cleaned = redactor.event(event, counted=is_selected)
                if isinstance(cleaned, Rejected):
                    yield cleaned
                    continue
                event = cleaned
                if isinstance(event, VaultEvent):
                    event = event.model_copy(update={"file": event.file.cleaned(redactor.text)})
            owner = owner_of(event, self.scope_by, PurePath(label).stem)
            event = splitter.assign(event) if splitter is not None else event
            if not is_selected:
                yield None
            elif owner is not None and redactor is not None and MARK.search(owner):
                yield _reject_redacted_scope(event, self.scope_by, owner, label)
            else:
                yield ScopedEvent(event, owner)

    def _is_selected(self, event: Event) -> bool:
        at = event.occurred_at
        if self.since is not None and (at is None or at < self.since):
            return False
        if self.until is not None and (at is None or at >= self.until):
            return False
        return not self.speakers or (event.speaker is not None and event.speaker.casefold() in self.speakers)


def import_options(
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
    edits: bool = False,
) -> ImportOptions:
    """Validate the options of an import. Raises ``InvalidInput``, and ``MissingExtra`` without the extra ``redact``."""
    for name, text in (("tz", tz), ("redact_region", redact_region)):
        require_storable(name, text)
    for name, table in (("columns", columns), ("map_user", map_user)):
        if table is not None and not isinstance(table, Mapping):
            raise InvalidInput(f"{name} must be a dict of names such as {{'this': 'that'}}, not {type(table).__name__}")
    wanted_speakers = names_of("speakers", speakers)
    for speaker in wanted_speakers:
        require_text("speakers", speaker)
    region = redact_region.upper() if redact_region is not None else None
    if redact or region is not None:
        require_region(region)
    if scope_by not in (None, "user", "channel", "project"):
        raise InvalidInput(f"scope_by must be 'user', 'channel' or 'project', got {scope_by!r}")
    for name in (map_user or {}).values():
        require_text("map_user", name)
        if not name.strip():
            raise InvalidInput("map_user contains an empty name: give each speaker a name")
    zone = zone_of(tz)
    return ImportOptions(
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
        edits=bool(edits),
    )


def _moment(name: str, value: Time | None, zone: tzinfo | None) -> datetime | None:
    """Return a time; a time without a zone is in ``zone``."""
    moment = moment_of(name, value)
    return moment if moment is None or value is None or zone is None else in_zone(value, moment, zone)


def _gap(hours: float | None) -> timedelta | None:
    if hours is None:
        return None
    if not (isinstance(hours, (int, float)) and math.isfinite(hours) and hours >= 0):
        raise InvalidInput(f"session_gap must be hours such as 6 (0 for no sessions by time), got {hours!r}")
    try:
        return timedelta(hours=hours)
    except OverflowError:
        raise InvalidInput(f"session_gap={hours!r} is too large: use a number of hours such as 6") from None


def _reject_redacted_scope(event: Event, rule: ScopeBy | None, user: str, file: str) -> Rejected:
    """Reject an event whose user is a redaction mark, so that two people never share a scope."""
    subject, advice = (
        ("speaker", "name the speaker with map_user") if rule == "user" else ("channel", "rename the channel first")
    )
    reason = f"the {subject} is {user} after redaction, which cannot name a scope: {advice}"
    return rejected(event.source or Source(file=file), reason)


def _is_in_conversation(record: Record, conversation: str) -> bool:
    """Return whether a record belongs to the conversation; a rejected record states it in its position."""
    if isinstance(record, Rejected):
        return record.position.startswith(f"{conversation}/")
    return record.metadata.get(CONVERSATION) == conversation
