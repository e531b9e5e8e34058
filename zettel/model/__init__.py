"""The public value types: everything that a memory stores and returns.

All values are immutable. Times are timezone-aware ``datetime`` values in UTC; a naive time is read as UTC.
"""

from zettel.model.base import (
    MAX_CONTENT_BYTES,
    MAX_DIGITS,
    MAX_NAME,
    MAX_NESTING,
    TIME_MAX,
    TIME_MIN,
    Frozen,
    LocalMoment,
    Moment,
    Name,
    Text,
    from_micros,
    in_own_zone,
    in_utc,
    storable,
    to_micros,
)
from zettel.model.events import Event, EventRecord, OnConflict, Remembered, Source, Status, event_text
from zettel.model.hits import Hit, Page, Step, Why
from zettel.model.index import NoteIndex, TermUse, TimeRange
from zettel.model.jobs import Job, JobKind, JobState
from zettel.model.links import REPLACING, Conflict, Graph, Link, LinkKey, LinkType, Neighbor
from zettel.model.notes import EDITABLE, Kind, Note, NoteUse, Term, Trait, as_metadata_pairs, fields_with
from zettel.model.queries import Example, Group, Queried, QueryResult
from zettel.model.reports import Estimate, Evolved, ModelUse, Tuned
from zettel.model.revisions import CallKind, Cause, CauseKind, Input, Revision
from zettel.model.scope import Scope
from zettel.model.searches import LoggedHit, LoggedSearch, Outcome, Proved
from zettel.model.speakers import IMPLIED_ROLES, ROLES, Role, implied_role, with_speaker
from zettel.model.usage import NoteUsage, SessionSize, Usage

__all__ = [
    "EDITABLE",
    "IMPLIED_ROLES",
    "MAX_CONTENT_BYTES",
    "MAX_DIGITS",
    "MAX_NAME",
    "MAX_NESTING",
    "REPLACING",
    "ROLES",
    "TIME_MAX",
    "TIME_MIN",
    "CallKind",
    "Cause",
    "CauseKind",
    "Conflict",
    "Estimate",
    "Event",
    "EventRecord",
    "Evolved",
    "Example",
    "Frozen",
    "Graph",
    "Group",
    "Hit",
    "Input",
    "Job",
    "JobKind",
    "JobState",
    "Kind",
    "Link",
    "LinkKey",
    "LinkType",
    "LocalMoment",
    "LoggedHit",
    "LoggedSearch",
    "ModelUse",
    "Moment",
    "Name",
    "Neighbor",
    "Note",
    "NoteIndex",
    "NoteUsage",
    "NoteUse",
    "OnConflict",
    "Outcome",
    "Page",
    "Proved",
    "Queried",
    "QueryResult",
    "Remembered",
    "Revision",
    "Role",
    "Scope",
    "SessionSize",
    "Source",
    "Status",
    "Step",
    "Term",
    "TermUse",
    "Text",
    "TimeRange",
    "Trait",
    "Tuned",
    "Usage",
    "Why",
    "as_metadata_pairs",
    "event_text",
    "fields_with",
    "from_micros",
    "implied_role",
    "in_own_zone",
    "in_utc",
    "storable",
    "to_micros",
    "with_speaker",
]
