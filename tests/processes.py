"""Distribution of tests over worker processes (``pytest -n 3``), and the choice of tests for ``make soak``, by markers.

Tests of one group run in one process. A Neo4j server belongs to the process whose tests empty it, so the tests of a
server form a group. Tests that start their own servers form another one. Every other file is a group, so that its
module fixtures are made once.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.neo4j_servers import NAMES, OWN

if TYPE_CHECKING:
    import pytest
    from xdist.scheduler import LoadScopeScheduling

_LONGEST = [*NAMES, " and ".join(NAMES), "small_model", OWN]
"""Groups that start first, so that all processes end at about the same time."""


def servers(item: pytest.Item) -> list[str]:
    """Return the Neo4j servers that a test uses."""
    named = {mark.args[0] for mark in item.iter_markers("neo4j")}
    return [name for name in NAMES if name in named]


def stores(item: pytest.Item) -> list[str]:
    """Return the store of each of a test's parameters."""
    return [mark.args[0] for mark in item.iter_markers("store")]


def is_repeated(item: pytest.Item) -> bool:
    """Return whether a test marked ``any_store`` already runs on the embedded store."""
    return item.get_closest_marker("any_store") is not None and bool({*stores(item)} - {"embedded", "http"})


def is_for_soak(item: pytest.Item) -> bool:
    """Return whether only ``make soak`` runs a test."""
    used = servers(item)
    if any(not mark.args or used for mark in item.iter_markers("soak_only")):
        return True
    if not used:
        return False
    between_servers = len(stores(item)) > 1 and "embedded" not in stores(item)
    older = used[-1] != NAMES[0] and item.get_closest_marker("every_release") is None
    return between_servers or older


def group(item: pytest.Item) -> str:
    """Return the name of the group that a test belongs to."""
    if item.get_closest_marker("own_server"):
        return OWN
    if item.get_closest_marker("small_model"):
        return "small_model"
    return " and ".join(servers(item)) or item.nodeid.partition("::")[0]


def rank(item: pytest.Item) -> int:
    """Return the position of a test's group in the order of start."""
    name = group(item)
    return _LONGEST.index(name) if name in _LONGEST else len(_LONGEST)


# xdist's controller knows the ids of tests, not their markers: the workers leave it a file with the group of each test.


@lru_cache
def groups_file(config: pytest.Config) -> Path:
    """Return the path of the file with the groups, in a new folder."""
    folder = tempfile.TemporaryDirectory(prefix="zettel-groups-")
    config.add_cleanup(folder.cleanup)
    return Path(folder.name, "groups.json")


def write_groups(path: str, items: Sequence[pytest.Item]) -> None:
    """Write the group of each test, as JSON by id."""
    part = Path(f"{path}.{os.getpid()}")
    part.write_text(json.dumps({item.nodeid: group(item) for item in items}), encoding="utf-8")
    part.replace(path)  # every worker writes the same


def scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Return a scheduler that deals out groups in the order in which tests were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        groups: dict[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self.groups is None:
                self.groups = json.loads(groups_file(config).read_text(encoding="utf-8"))
            return self.groups[nodeid]

    config.option.loadscopereorder = False
    return Groups(config, log)
