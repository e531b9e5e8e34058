"""What the uses of a memory teach it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from zettel.arguments import require_id, require_path, several
from zettel.errors import InvalidInput
from zettel.face.opened import Opened
from zettel.model import LoggedSearch, Outcome, Scope, Tuned
from zettel.query import Asked

if TYPE_CHECKING:
    from zettel.scoring import ScorerSpec
    from zettel.scoring.tuning import Reading


class Learning(Opened):
    """What is told of searches, and what is learned from that."""

    async def feedback(
        self, search_id: str, used: Iterable[str], outcome: Outcome | None = None, *, scope: Scope | None = None
    ) -> None:
        """Tell which notes a search found that were really of use, and how that for which it was asked ended.

        What is of use fades later; see ``zettel.evolve.strength``. Told again of the same search, it takes the place of
        what was told before. Raises ``NotFound`` for a search that is not in the log, ``InvalidInput`` for a note that
        it did not find.
        """
        engine, scope = await self._use(scope, search_id)
        told = used if isinstance(used, str) else several("used", used, "note ids")
        for id in told:
            require_id(scope, id)
        await engine.feedback.tell(scope, search_id, told, outcome)

    async def searches(self, *, scope: Scope | None = None) -> list[LoggedSearch]:
        """The log of searches, oldest first: question, hits, and what was told of them."""
        engine, scope = await self._use(scope)
        await engine.finding.log.flush()
        return [search async for search in engine.store.searches(scope)]

    async def tune(
        self,
        into: str | Path,
        *,
        decoder: str | Path | None = None,
        scopes: Iterable[Scope] | None = None,
        on_progress: Callable[[str, int, int], None] | None = None,
        scope: Scope | None = None,
    ) -> Tuned:
        """Learn from the feedback in the log what is of use, and write the scorer into a folder if that is better.

        Learns of this scope, or of the ``scopes`` that are named, and goes on from what stands in the folder, or else
        from the ``decoder`` of a folder, by default the one that is shipped. Search with ``scorer="decoder:FOLDER"``.
        What was not better on searches held back is not written: see ``Tuned``. Raises ``InvalidInput`` where too
        little was told, ``ScorerError`` for a folder with something else in it, ``MissingExtra`` without torch.
        """
        from zettel.scoring.device import require_torch

        require_torch("the memory decoder")
        from zettel.scoring.fusion import FusionScorer
        from zettel.scoring.tuned import continued
        from zettel.scoring.tuning import tune

        engine, own = await self._use(scope)
        into = require_path("into", into)
        scorer = await anyio.to_thread.run_sync(continued, into, decoder)

        async def ask(scope: Scope, search: LoggedSearch, reading: Reading) -> None:
            asked = Asked(search.question, k=1, now=search.asked_at)
            await engine.finding.search(scope, [asked], FusionScorer(), [reading])

        wanted = [own] if scopes is None else list(dict.fromkeys(scopes))
        logs = [(await self.searches(scope=one), partial(ask, one)) for one in wanted]
        better, told = await tune(scorer, logs, on_progress or (lambda what, done, total: None))
        if told.accepted:
            await anyio.to_thread.run_sync(better.save, into)
            self._loaded.pop(f"decoder:{into}", None)
        return told

    async def write_slots(self, *, anew: bool = False, scorer: ScorerSpec = None, scope: Scope | None = None) -> int:
        """Write what is not there yet to the scope's slots, or ``anew`` all its notes; how many notes stand in them.

        Only a memory decoder with a bank has slots. They are kept up with what arrives where it is the memory's own
        scorer, and destroyed when a note is deleted or put in quarantine. Raises ``InvalidInput`` for a scorer that has
        no bank.
        """
        from zettel.search.slots import bank_of

        engine, scope = await self._use(scope)
        _, stages = await self._scorers(scorer)
        bank = bank_of(stages)
        if bank is None:
            raise InvalidInput("that scorer has no bank of slots: train one with `zettel scorer train --bank 16`")
        return await engine.slots.write(scope, bank, anew)
