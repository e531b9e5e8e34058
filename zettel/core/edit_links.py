"""Changes that a person makes to links: link, unlink, and resolve a contradiction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from zettel.core.authority import require_authority
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import BY_HAND
from zettel.core.fold import state_of
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.errors import InvalidInput, NotFound
from zettel.model import REPLACING, Input, Link, LinkKey, LinkType, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.operations import Op, PutRevision

LINKED_BY_HAND = (LinkType.RELATES, LinkType.SUPERSEDES, LinkType.UPDATES, LinkType.CONTRADICTS)
"""Types of manual links: MENTIONS follows from the text, and jobs write DERIVED_FROM."""
RESOLVED = "a person decided for this note"
"""The reason of a resolved conflict, if the person gave none."""

Pair = Mapping[str, NoteHistory]
"""The histories of the two notes of a link."""
Make = Callable[[Pair, Clock], Awaitable[list[PutRevision]]]


class LinkEditor:
    """Changes links of a store. A change of two notes is one transaction."""

    def __init__(self, store: GraphStore, commits: Commits) -> None:
        self._store = store
        self._commits = commits

    async def link(self, scope: Scope, key: LinkKey, reason: str) -> Link:
        """Link two notes as a revision of the source; a link of the same type is replaced.

        Raises ``NotFound``, and ``InvalidInput`` for an archived note or a link to itself.
        """
        made: list[Link] = []

        async def make(pair: Pair, clock: Clock) -> list[PutRevision]:
            await self._require_shown(scope, pair)
            _require_authority(key, pair)
            made[:] = [_new_link(key, reason, clock)]
            return [revised(pair[key.source], clock, BY_HAND, {}, links=tuple(made), inputs=_inputs(pair))]

        await self._revise(scope, key.source, key.target, make)
        return made[0]

    async def unlink(self, scope: Scope, key: LinkKey) -> Link:
        """Remove a link as a revision of each note that has it, usually of the source.

        Raises ``NotFound``, and ``InvalidInput`` if the link does not exist.
        """
        removed: list[Link] = []

        async def make(pair: Pair, clock: Clock) -> list[PutRevision]:
            removed[:] = [link for link in _links(pair) if link.key == key]
            if not removed:
                raise InvalidInput(
                    f"{key.source} has no {key.type.value} link to {key.target}: see `links` of the note, and mind the "
                    "direction"
                )
            return _unlinked(pair, key, clock)

        await self._revise(scope, key.source, key.target, make)
        return removed[0]

    async def resolve(self, scope: Scope, keep: str, over: str, reason: str) -> Link:
        """Supersede a note by one that contradicts it, in either order of time.

        Raises ``NotFound``, and ``InvalidInput`` for archived notes, and notes that do not contradict each other.
        """
        key, opposite = LinkKey(keep, over, LinkType.SUPERSEDES), LinkKey(over, keep, LinkType.SUPERSEDES)
        made: list[Link] = []

        async def make(pair: Pair, clock: Clock) -> list[PutRevision]:
            await self._require_shown(scope, pair)
            if not any(link.type in (LinkType.CONTRADICTS, LinkType.SUPERSEDES) for link in _links(pair)):
                raise InvalidInput(f"{keep} and {over} do not contradict each other: see `conflicts`, or link them")
            _require_authority(key, pair)
            puts = _unlinked(pair, opposite, clock)
            history = next((pair[keep].then(put.revision) for put in puts if put.note.id == keep), pair[keep])
            made[:] = [_new_link(key, reason or RESOLVED, clock)]
            put = revised(history, clock, BY_HAND, {}, links=tuple(made), inputs=_inputs(pair))
            return [*puts, put]

        await self._revise(scope, keep, over, make)
        return made[0]

    async def _revise(self, scope: Scope, source: str, target: str, make: Make) -> None:
        if source == target:
            raise InvalidInput(f"{source} cannot be linked to itself: name two notes")

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            histories = await self._store.histories(scope, [source, target])
            if missing := [id for id in (source, target) if id not in histories]:
                raise NotFound(scope, missing)
            return [*await make(histories, clock)]

        await self._commits.commit(scope, plan)

    async def _require_shown(self, scope: Scope, pair: Pair) -> None:
        notes = Rows(await self._store.notes(scope, sorted(pair)))
        for id in pair:
            if notes[id].archived:
                raise InvalidInput(f"{id} is in the archive, or was merged: link notes that are not archived")



def _require_authority(key: LinkKey, pair: Pair) -> None:
    """Raise ``PermissionDenied`` for a link that replaces a note of more trust than the principal has."""
    if key.type in REPLACING:
        require_authority(state_of(pair[key.target])[0])


def _links(pair: Pair) -> list[Link]:
    """Return the links between two notes that a revision of either made."""
    links = [link for history in pair.values() for link in state_of(history)[1]]
    return [link for link in links if {link.source, link.target} == pair.keys()]


def _unlinked(pair: Pair, key: LinkKey, clock: Clock) -> list[PutRevision]:
    """Return revisions of the notes that have a link, without it."""
    return [
        revised(history, clock, BY_HAND, {}, unlinks=(key,), inputs=_inputs(pair))
        for history in pair.values()
        if any(link.key == key for link in state_of(history)[1])
    ]


def _new_link(key: LinkKey, reason: str, clock: Clock) -> Link:
    return Link(source=key.source, target=key.target, type=key.type, reason=reason, recorded_at=clock.recorded_at)


def _inputs(pair: Pair) -> tuple[Input, ...]:
    return tuple(Input(id, state_of(pair[id])[0].version) for id in sorted(pair))
