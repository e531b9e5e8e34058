"""Every example runs as it stands, in an empty folder, and says what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
SAYS = {
    "remember_a_chat.py": [
        "A luthier in Cremona; her workshop smells of spruce.\n        because of: I brought it to Giulia Fontana",
        "- 18:02 Ada: I brought it to Giulia Fontana this morning.",
        "Nothing is left of the chat.",
    ],
    "two_clocks.py": [
        "all we know:\n  2024-05-01  I live in Oslo now",
        "true in March:\n  2024-02-20  I live in Bergen, but no longer above the bakery.\n  2024-01-10  I live in",
        "known in between:\n  2024-01-10  I live in Bergen, above a bakery.\n",
    ],
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in (CHECKOUT / "examples").glob("*.py")} == SAYS.keys()


@pytest.mark.parametrize("name", SAYS)
def test_example(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(CHECKOUT / "examples" / name)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    for said in SAYS[name]:
        assert said in done.stdout, done.stdout
    assert not list(tmp_path.iterdir()), "an example leaves files behind"
