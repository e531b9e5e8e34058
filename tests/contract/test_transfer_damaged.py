"""Transfer of damaged files: any damage is one clear error, and nothing is stored."""

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
    """Return the paths of all values in a record."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(place for key, part in inner for place in places(part, (*path, key)))]


def changed(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return the record with another value at a path."""
    copy = deepcopy(record)
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copy


@pytest.mark.soak
def test_damage_is_reported_in_one_line(
    exported: Path, tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    """Damaged bytes, and values of a wrong type behind a valid checksum."""
    original, count = exported.read_bytes(), soak_scale(5_000)
    records = unsealed(exported)
    positions = [(number, path) for number, record in enumerate(records) for path in places(record)]
    bad = tmp_path / "bad.zettel"
    refused = 0
    with Memory(tmp_path / "m.db") as memory:

        def check_damage() -> bool:
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
        @given(damages(len(original)))
        def try_bytes(done: list[Callable[[bytes], bytes]]) -> None:
            nonlocal refused
            damaged = original
            for damage in done:
                damaged = damage(damaged)
            bad.write_bytes(damaged)
            refused += check_damage()

        @settings(max_examples=count // 2, suppress_health_check=[HealthCheck.too_slow])
        @given(st.sampled_from(positions), st.sampled_from(VALUES))
        def try_values(position: tuple[int, tuple[Any, ...]], value: Any) -> None:
            nonlocal refused
            number, path = position
            changed_record = changed(records[number], path, value)
            bad.write_bytes(sealed([*records[:number], changed_record, *records[number + 1 :]]))
            refused += check_damage()

        try_bytes()
        try_values()
        assert memory.check() == []
    record_property("refused", refused)
