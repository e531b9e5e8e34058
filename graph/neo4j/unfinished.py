"""Completion of changes too large for one transaction: scope deletion and the end of a restore.

The first transaction decides, and changes as many nodes as it may. The caller processes the rest page by page. After
an interruption the next ``open`` or ``state`` of that scope continues.
"""

from __future__ import annotations

import secrets

from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.model import Scope
from zettel.ports.operations import Conflict

SETTLED_AT_ONCE = 2500
"""Nodes of each kind per transaction: about 10,000 in all, with some 50,000 relationships."""
ANSWERS_AT_ONCE = 250
"""Model answers, and logged searches, per transaction: each has up to some 200 relationships."""
HUB = 1000
"""Incoming relationships from which a note is deleted after their sources, so that no transaction deletes too many."""


async def end_restore(transaction: Transaction, scope: Scope, place: str) -> None:
    """Make the restored nodes under the key ``place`` the scope. Raises ``Conflict`` if the scope exists by now."""
    ((free,),) = await transaction.run("restore_commit", scope=scope.key, place=place)
    if not free:
        raise Conflict(f"{scope} was written to while it was restored")
    await _publish_page(transaction, place, scope.key)


async def abandon(scope: Scope, transaction: Transaction) -> list[str]:
    """Begin to delete the unfinished restores of a scope, and return their keys."""
    places = [row["scope"] for row in await transaction.run("restores") if row["of"] == scope.key]
    for place in places:
        await drop(place, transaction)
    return places


async def drop(scope: str, transaction: Transaction) -> int:
    """Begin to delete all nodes of a scope, and return how many notes it had. A small scope is deleted completely."""
    rows = await transaction.run("scope_drop", scope=scope)
    if not rows:
        return 0
    await _delete_page(transaction, scope)
    return int(rows[0]["notes"])


async def settle(connection: Neo4jConnection, scope: str | None) -> bool:
    """Complete all unfinished changes under a scope's key, or (None) under any key; False if there were none.

    Raises ``StoreBusy`` if another process that does the same is too slow.
    """
    if not await connection.read("unsettled", scope=scope):
        return False

    async def work(transaction: Transaction) -> bool:
        await transaction.run("store_lock", token=secrets.token_hex(8))  # one page at a time over all processes
        unsettled = await transaction.run("unsettled", scope=scope)
        if unsettled and unsettled[0]["leaving"]:
            await _delete_page(transaction, unsettled[0]["scope"])
        elif unsettled:
            await _publish_page(transaction, unsettled[0]["scope"], unsettled[0]["of"])
        return bool(unsettled)

    while await connection.writing(work):
        pass
    return True


async def _delete_page(transaction: Transaction, scope: str) -> None:
    ((done,),) = await transaction.run(
        "leaving_page", scope=scope, page=SETTLED_AT_ONCE, answers=ANSWERS_AT_ONCE, hub=HUB
    )
    if done:
        await transaction.run("leaving_end", scope=scope)


async def _publish_page(transaction: Transaction, place: str, scope: str) -> None:
    ((done,),) = await transaction.run("arriving_page", place=place, scope=scope, page=SETTLED_AT_ONCE)
    if done:
        await transaction.run("arriving_end", place=place, scope=scope)
