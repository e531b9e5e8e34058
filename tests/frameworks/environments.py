"""Makes the environments with uv, beside what runs the tests, and keeps them as long as what they hold is wanted."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.known import CHECKOUT, ENVIRONMENTS, FRAMEWORKS, Environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTING = ("hypothesis>=6.100", "pytest>=8.3", "pytest-timeout>=2.3")
"""What the tests themselves need there."""


def requirements(environment: Environment) -> list[str]:
    """Requirements of the core, [llm], the frameworks and the tests; zettel itself is the checkout."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [wanted for name in environment.frameworks for wanted in project["optional-dependencies"][name]]
    if environment.lowest:
        extras = [re.sub(r">=", "==", wanted, count=1) for wanted in extras]
    beside = [wanted for one in FRAMEWORKS if one.name in environment.frameworks for wanted in one.beside]
    llm = project["optional-dependencies"]["llm"]
    return [*project["dependencies"], *llm, *extras, *beside, *environment.more, *TESTING]


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made if it is not there, or if other things are wanted in it now."""
    uv = pytest.importorskip("uv", reason="uv is missing, which makes the environments of agent frameworks")
    place = Path(sys.prefix) / "frameworks" / name
    wanted = "\n".join([*requirements(ENVIRONMENTS[name]), ""])
    place.parent.mkdir(exist_ok=True)
    with (place.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place.parent / f"{name}.txt"
        if not done.exists() or done.read_text(encoding="utf-8") != wanted:
            done.unlink(missing_ok=True)
            asked = place.parent / f"{name}.in"
            asked.write_text(wanted, encoding="utf-8")
            python = place / "bin" / "python"
            for step in (["venv", "--clear", "--python", sys.executable, place],
                         ["pip", "install", "--python", python, "--requirement", asked]):  # fmt: skip
                ran = subprocess.run([uv.find_uv_bin(), "--quiet", *step], capture_output=True, text=True)
                assert ran.returncode == 0, f"uv could not make the environment {name}:\n{ran.stderr}"
            asked.rename(done)
    return place / "bin" / "python"
