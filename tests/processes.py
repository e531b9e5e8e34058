"""How tests are dealt out to several processes (``pytest -n 3``): in groups, each to one process, the longest first.

All that may not run side by side is one group. A server belongs to the process whose tests empty it: what uses one is a
group, and what uses both is one that starts its own. Every file of the others is a group too, so that what its tests
share is made once. The id of a test tells where it belongs, which is why ids name servers and the small model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.neo4j_servers import NAMES, OWN
from tests.small_model import NAME as SMALL_MODEL

if TYPE_CHECKING:
    import pytest
    from xdist.scheduler import LoadScopeScheduling

ABOVE_THE_STORES = frozenset(
    f"tests/contract/test_{name}.py"
    for name in (
        "annotated", "changes_of_fact", "evolved", "evolved_by_model", "honest_failure", "merged", "moving_refused",
        "quarantined", "reflected", "taken_back",
    )
)  # fmt: skip
"""Promises that no statement of a store keeps: on the older Neo4j they are tested in the soak."""

_LONGEST = [*NAMES, " and ".join(NAMES), SMALL_MODEL, OWN]
"""Groups that others run beside, so that the processes end at about the same time."""


def servers(test: str) -> list[str]:
    """The Neo4j servers of tests/neo4j_servers.py that a test uses, by its id."""
    return [name for name in NAMES if f"[{name}" in test or f"-{name}" in test]


def is_for_soak(test: str) -> bool:
    """Whether a test is left to the soak, by its id: what the release lines have in common is tried on the newest, and
    a memory is moved to the older one and back, but not from every store to every other."""
    older = [name for name in servers(test) if name in NAMES[1:]]
    file, _, rest = test.partition("::")
    moved = "ThereAndBack" in rest and "embedded" not in rest
    return bool(older) and (file in ABOVE_THE_STORES or moved or file == "tests/integration/test_workers.py")


def group(test: str) -> str:
    """What a test runs in one process with, by its id."""
    if named := servers(test):
        return " and ".join(named)
    return next((shared for shared in (OWN, SMALL_MODEL) if shared in test), test.partition("::")[0])


def rank(test: str) -> int:
    """Sorts groups: lower ones begin first."""
    place = group(test)
    return _LONGEST.index(place) if place in _LONGEST else len(_LONGEST)


def scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Deals groups out in the order in which tests were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)
