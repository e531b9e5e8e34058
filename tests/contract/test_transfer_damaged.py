"""Moving: whatever is wrong with a file, it is told in one line, and nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.transfer_helpers import sealed, unsealed
from tests.unit.test_damaged import KINDS, damages
from zettel import Memory
from zettel.errors import ZettelError

VALUES = [json.loads(kind) for kind in KINDS]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where each value stands in a record, however deep."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(place for key, one in inner for place in places(one, (*path, key)))]


def changed(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The record with another value in that place."""
    copy = deepcopy(record)
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copy


@pytest.mark.soak
def test_damage_is_told_in_one_line(
    exported: Path, tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    """Bytes that are damaged, and records whose values are of another kind, behind a checksum that fits."""
    whole, count = exported.read_bytes(), soak_scale(5_000)
    records = unsealed(exported)
    spots = [(number, path) for number, one in enumerate(records) for path in places(one)]
    bad = tmp_path / "bad.zettel"
    refused = 0
    with Memory(tmp_path / "m.db") as memory:

        def require_told() -> bool:
            try:
                memory.import_transcript(bad, "zettel")
            except ZettelError as error:
                assert bad.name in str(error)  # noqa: PT017 - or none was raised
                assert "\n" not in str(error)  # noqa: PT017
                assert memory.scopes() == []
                return True
            for scope in memory.scopes():
                memory.delete_scope(scope=scope)
            return False

        @settings(max_examples=count // 2, suppress_health_check=[HealthCheck.too_slow])
        @given(damages(len(whole)))
        def try_bytes(done: list[Callable[[bytes], bytes]]) -> None:
            nonlocal refused
            damaged = whole
            for damage in done:
                damaged = damage(damaged)
            bad.write_bytes(damaged)
            refused += require_told()

        @settings(max_examples=count // 2, suppress_health_check=[HealthCheck.too_slow])
        @given(st.sampled_from(spots), st.sampled_from(VALUES))
        def try_values(spot: tuple[int, tuple[Any, ...]], value: Any) -> None:
            nonlocal refused
            number, path = spot
            odd = changed(records[number], path, value)
            bad.write_bytes(sealed([*records[:number], odd, *records[number + 1 :]]))
            refused += require_told()

        try_bytes()
        try_values()
        assert memory.check() == []
    record_property("refused", refused)
