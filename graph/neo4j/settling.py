"""What may be more than one transaction can hold: destroying a scope, and making one visible that was restored.

The first transaction decides it, and takes as many nodes as one may. What is left is taken page by page: by whoever
began, and if that was cut off, by whoever opens the database next or asks where that scope stands, as every write does.
"""

from __future__ import annotations

import secrets

from zettel.batch import Batch, Conflict, EndRestore
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.model import Scope

SETTLED_AT_ONCE = 2500
"""Nodes of each kind that one transaction takes: about 10,000 in all, with some 50,000 relationships."""
ANSWERS_AT_ONCE = 250
"""Answers of language models, and logged searches, that it takes beside these: each leads to notes, up to some 200."""
HUB = 1000
"""A note that this many relationships lead to is destroyed after those that they come from: so no transaction has to
delete more than a page's."""


async def end(transaction: Transaction, batch: Batch, place: str) -> None:
    """If this batch ends its restore, decide that what was restored is the scope. Raises ``Conflict`` if there is one
    by now."""
    if not any(isinstance(op, EndRestore) for op in batch.ops):
        return
    ((free,),) = await transaction.run("restored_decide", scope=batch.scope.key, place=place)
    if not free:
        raise Conflict(f"{batch.scope} was written to while it was restored")
    await _show(transaction, place, batch.scope.key)


async def abandon(scope: Scope, transaction: Transaction) -> list[str]:
    """Begin to destroy what restores of a scope have begun and not ended; under which keys it is."""
    places = [row["scope"] for row in await transaction.run("restored") if row["of"] == scope.key]
    for place in places:
        await drop(place, transaction)
    return places


async def drop(scope: str, transaction: Transaction) -> int:
    """Begin to destroy all nodes of a scope, which makes an end of a small one; how many notes it had."""
    told = await transaction.run("scope_drop", scope=scope)
    if not told:
        return 0
    await _destroy(transaction, scope)
    return int(told[0]["notes"])


async def settle(connection: Connection, scope: str | None) -> bool:
    """Go on until nothing is left to do under a scope's key, or (None) under any; whether there was something.

    Raises ``StoreBusy`` if somebody else, who does the same, is too slow.
    """
    if not await connection.read("unsettled", scope=scope):
        return False

    async def work(transaction: Transaction) -> bool:
        await transaction.run("store_lock", token=secrets.token_hex(8))  # one page at a time, whoever takes it
        left = await transaction.run("unsettled", scope=scope)
        if left and left[0]["leaving"]:
            await _destroy(transaction, left[0]["scope"])
        elif left:
            await _show(transaction, left[0]["scope"], left[0]["of"])
        return bool(left)

    while await connection.writing(work):
        pass
    return True


async def _destroy(transaction: Transaction, scope: str) -> None:
    ((done,),) = await transaction.run(
        "leaving_page", scope=scope, page=SETTLED_AT_ONCE, answers=ANSWERS_AT_ONCE, hub=HUB
    )
    if done:
        await transaction.run("leaving_end", scope=scope)


async def _show(transaction: Transaction, place: str, scope: str) -> None:
    ((done,),) = await transaction.run("arriving_page", place=place, scope=scope, page=SETTLED_AT_ONCE)
    if done:
        await transaction.run("arriving_end", place=place, scope=scope)
