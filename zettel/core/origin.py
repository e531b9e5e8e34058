"""Decides whether an imported record is a new version of a stored event: an id alone does not identify an event.

Ids in mails, notes and JSON lines are chosen by their writers. So a record changes the stored event of its id only
if it comes from the same sender and the same file, and has no lower trust. Otherwise it is a separate event, unless it
repeats the stored one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from zettel.core.authority import may_replace
from zettel.model import Event, EventRecord

STDIN = "-"
"""The name of standard input, which identifies no file."""
ADDRESS = "address"
"""The metadata field with the address of a sender, who may change the displayed name."""


@dataclass
class Origin:
    """The file, folder or zip that an import reads as a whole into a scope.

    ``since`` is the scope's ``seq`` before the import, ``foreign`` the number of records with a foreign id.
    """

    path: str
    since: int | None = None
    foreign: int = 0

    def may_revise(self, event: Event, stored: EventRecord) -> bool:
        """Return whether a record is a new version of the stored event with its id."""
        return self._contains(stored) and _same_sender(event, stored) and may_replace(event, stored)

    def _contains(self, stored: EventRecord) -> bool:
        if self.since is not None and stored.seq > self.since:  # an earlier record of this import
            return True
        if stored.source is None or self.path == STDIN or self.path.startswith(f"{STDIN}/"):
            return False
        file, path = os.path.abspath(stored.source.file), os.path.abspath(self.path)
        return file == path or file.startswith(f"{path}{os.sep}")


def repeats(event: Event, stored: Event) -> bool:
    """Return whether a record equals a stored event: same sender, time and text. Sessions may differ."""
    return sender_of(event) == sender_of(stored) and _statement(event) == _statement(stored)


def sender_of(event: Event) -> str:
    """Return the speaker and the address of an event, case-folded: others may use the name, redaction the address."""
    return f"{event.speaker or ''} {_address(event)}".casefold()


def _same_sender(event: Event, stored: Event) -> bool:
    # If only the speaker differs in a file, ``map_user`` renamed it.
    is_renamed = _address(event) == _address(stored) and _statement(event) == _statement(stored)
    return is_renamed or sender_of(event) == sender_of(stored)


def _address(event: Event) -> str:
    address = event.metadata.get(ADDRESS)
    return address if isinstance(address, str) else ""


def _statement(event: Event) -> tuple[object, ...]:
    return event.occurred_at, event.title, event.content, event.payload
