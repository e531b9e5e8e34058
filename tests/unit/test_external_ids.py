"""Names of the field for a caller's own id."""

from __future__ import annotations

from zettel import Event


def test_the_former_name_of_the_field_is_accepted() -> None:
    assert Event.model_validate({"content": "x", "id": "1"}).external_id == "1"
    assert Event.model_validate_json('{"content": "x", "id": "1"}').model_dump()["external_id"] == "1"
