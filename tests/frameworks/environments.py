"""Environments of agent frameworks, made with uv and cached until their requirements change."""

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
"""Requirements of the tests themselves."""


def requirements(environment: Environment) -> list[str]:
    """Return the requirements of the core, [llm], the frameworks and the tests; zettel itself is the checkout."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name in environment.frameworks for line in project["optional-dependencies"].get(name, ())]
    if environment.lowest:
        extras = [re.sub(r">=", "==", line, count=1) for line in extras]
    beside = [line for framework in FRAMEWORKS if framework.name in environment.frameworks for line in framework.beside]
    llm = project["optional-dependencies"]["llm"]
    return [*project["dependencies"], *llm, *extras, *beside, *environment.more, *TESTING]


def python_of(name: str) -> Path:
    """Return the interpreter of an environment; make it if it is missing or its requirements have changed."""
    uv = pytest.importorskip("uv", reason="uv is missing, which makes the environments of agent frameworks")
    folder = Path(sys.prefix) / "frameworks" / name
    text = "\n".join([*requirements(ENVIRONMENTS[name]), ""])
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = folder.parent / f"{name}.txt"
        if not installed.exists() or installed.read_text(encoding="utf-8") != text:
            installed.unlink(missing_ok=True)
            requested = folder.parent / f"{name}.in"
            requested.write_text(text, encoding="utf-8")
            python = folder / "bin" / "python"
            for step in (["venv", "--clear", "--python", sys.executable, folder],
                         ["pip", "install", "--python", python, "--requirement", requested]):  # fmt: skip
                process = subprocess.run([uv.find_uv_bin(), "--quiet", *step], capture_output=True, text=True)
                assert process.returncode == 0, f"uv could not make the environment {name}:\n{process.stderr}"
            requested.rename(installed)
    return folder / "bin" / "python"
