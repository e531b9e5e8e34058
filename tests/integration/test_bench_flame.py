"""``zettel bench flame`` with the real py-spy."""

from __future__ import annotations

from pathlib import Path

import pytest

from zettel.bench import flame
from zettel.errors import InvalidInput

pytestmark = pytest.mark.integration


@pytest.mark.timeout(300)  # py-spy stops processes that import onnxruntime, 200 times a second
def test_an_activity_is_sampled_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flame, "ACTIVITIES", {"add": flame.ACTIVITIES["add"]})
    result = flame.run(50, lambda *_: None, tmp_path / "made-up", tmp_path / "pictures", "static")
    assert result.columns == ["share of the busy time", "add"]
    assert any(str(row[0]).startswith("zettel.") for row in result.rows)
    assert "<svg" in (tmp_path / "pictures" / "flame-add.svg").read_text()


def test_a_missing_py_spy_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flame, "py_spy", lambda: None)
    with pytest.raises(InvalidInput, match="pip install py-spy"):
        flame.run(50, lambda *_: None, tmp_path, None, "static")
