"""The adapters for agent frameworks, each with its lowest and newest supported version.

The frameworks conflict with each other, so tests/frameworks runs in separate environments.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable

import pytest

from tests.frameworks.environments import python_of
from tests.frameworks.known import CHECKOUT, ENVIRONMENTS, FRAMEWORKS

pytestmark = pytest.mark.integration

COMMON = [f"tests/frameworks/test_{name}.py" for name in ("pages", "overhead", "two_users")]

_RATIO = re.compile(r"^([\w-]+): [\d.]+ ms, Memory\.search [\d.]+ ms, ([\d.]+) times$", re.MULTILINE)
"""A line that tests/frameworks/test_overhead.py prints."""
_TWO_USERS = re.compile(r"^([\w-]+), two users at once: (\d+) calls, (\d+) of \d+ items of the other$", re.MULTILINE)
"""A line that tests/frameworks/two_users.py prints."""


def test_each_framework_has_two_environments_a_page_and_an_example() -> None:
    for lowest in (False, True):
        tested = [name for env in ENVIRONMENTS.values() if env.lowest is lowest for name in env.frameworks]
        assert sorted(tested) == sorted(framework.name for framework in FRAMEWORKS)
    for framework in FRAMEWORKS:
        assert framework.tests.exists()
        assert framework.page.exists()
        assert framework.example.exists()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run all environments in the soak, else those with the newest versions."""
    if "environment" in metafunc.fixturenames:
        soak = metafunc.config.getoption("soak")
        metafunc.parametrize("environment", [name for name, env in ENVIRONMENTS.items() if soak or not env.lowest])


@pytest.mark.frameworks
@pytest.mark.soak
@pytest.mark.timeout(900)  # the first run downloads a gigabyte of packages
def test_the_adapter_tests_pass_in_each_environment(
    environment: str, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    python = python_of(environment)
    names = ENVIRONMENTS[environment].frameworks
    paths = [str(framework.tests.relative_to(CHECKOUT)) for framework in FRAMEWORKS if framework.name in names]
    soak = ["--soak"] if request.config.getoption("soak") else []
    process = subprocess.run(
        [python, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *soak, *paths, *COMMON],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
        | {"ZETTEL_NO_SKIP": "1", "ZETTEL_FRAMEWORKS": " ".join(names)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.search(r"\b\d+ passed", process.stdout, re.MULTILINE), process.stdout
    for name, ratio in _RATIO.findall(process.stdout):
        record_property(f"{name}, search over Memory.search", float(ratio))
    for name, calls, others in _TWO_USERS.findall(process.stdout):
        record_property(f"{name}, items of the other user in {calls} calls", int(others))
