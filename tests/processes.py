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

_CONTRACTS = ("explained", "reversible", "same_answers", "scoped", "two_clocks")
_INTEGRATION = ("neo4j_agreement", "neo4j_cypher", "neo4j_store")
ON_ALL_SERVERS = frozenset(
    [f"tests/contract/test_{name}.py" for name in _CONTRACTS]
    + [f"tests/integration/test_{name}.py" for name in _INTEGRATION]
)
"""What is tested on the older Neo4j in every run: that its statements are planned well, keep what they are given and
find the same. What else the release lines have in common is tried on the newest, and on the older one in the soak."""

_LONGEST = [*NAMES, " and ".join(NAMES), SMALL_MODEL, OWN]
"""Groups that others run beside, so that the processes end at about the same time."""


def servers(test: str) -> list[str]:
    """The Neo4j servers of tests/neo4j_servers.py that a test uses, by its id."""
    return [name for name in NAMES if f"[{name}" in test or f"-{name}" in test]


_ABOVE_ALL_STORES = ("test_moving_refused.py", "is_refused", "goes_wrong_once", "a_wrong_argument", "what_is_long")
"""In the ids of tests that end before a store is asked, or do the same for each of many inputs."""


_LONG = (
    "test_shipped_model_can_be_made_again", "test_a_server_is_ended_during_an_import",
    f"test_flat_memory[{NAMES[0]}]", f"test_several_processes_share_the_jobs[{NAMES[0]}]",
    f"test_what_is_kept_is_not_made_again[{NAMES[0]}]",
    f"test_many_faults_lose_no_event_and_touch_no_other_note[{NAMES[0]}]",
)  # fmt: skip
"""In the ids of tests that take a minute each, or three, of what hardly changes, or is tried on the newer server, in a
file, or with another end (a server that is ended: ``test_kills_lose_nothing``, and ``test_neo4j_faults.py``)."""


def is_for_soak(test: str) -> bool:
    """Whether a test is left to the soak, by its id. A memory moves to a server from a file, and back."""
    if any(part in test for part in _LONG):
        return True
    named = servers(test)
    file, parameters = test.partition("::")[0], test.partition("[")[2]
    if not named or not file.startswith(("tests/contract/", "tests/integration/")):
        return False
    alike = file.startswith("tests/contract/") and any(part in test for part in _ABOVE_ALL_STORES)
    between_servers = "moving" in file and parameters != f"{named[0]}]" and "embedded" not in parameters
    older = named[-1] != NAMES[0]
    return alike or between_servers or (older and file not in ON_ALL_SERVERS)


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
