"""The adapters for agent frameworks, each with the newest version and the lowest that it promises to work with.

The frameworks exclude each other, and each brings a hundred packages: they have environments of their own, where
tests/frameworks runs.
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

COMMON = ["tests/frameworks/test_pages.py", "tests/frameworks/test_overhead.py"]

_RATIO = re.compile(r"^([\w-]+): [\d.]+ ms, Memory\.search [\d.]+ ms, ([\d.]+) times$", re.MULTILINE)
"""What tests/frameworks/test_overhead.py tells."""


def test_each_framework_is_tested_with_both_ends_and_has_a_page_and_an_example() -> None:
    for lowest in (False, True):
        tested = [name for one in ENVIRONMENTS.values() if one.lowest is lowest for name in one.frameworks]
        assert sorted(tested) == sorted(framework.name for framework in FRAMEWORKS)
    for framework in FRAMEWORKS:
        assert framework.tests.exists()
        assert framework.page.exists()
        assert framework.example.exists()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Lowest versions are for the soak: they do not change while what they are does not."""
    if "environment" in metafunc.fixturenames:
        soak = metafunc.config.getoption("soak")
        metafunc.parametrize("environment", [name for name, one in ENVIRONMENTS.items() if soak or not one.lowest])


@pytest.mark.frameworks
@pytest.mark.soak
@pytest.mark.timeout(900)  # the first time a gigabyte of packages is fetched
def test_adapters(
    environment: str, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    python = python_of(environment)
    here = ENVIRONMENTS[environment].frameworks
    own = [str(one.tests.relative_to(CHECKOUT)) for one in FRAMEWORKS if one.name in here]
    soak = ["--soak"] if request.config.getoption("soak") else []
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *soak, *own, *COMMON],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
        | {"ZETTEL_NO_SKIP": "1", "ZETTEL_FRAMEWORKS": " ".join(here)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"\b\d+ passed", ran.stdout, re.MULTILINE), ran.stdout
    for name, ratio in _RATIO.findall(ran.stdout):
        record_property(f"{name}, search over Memory.search", float(ratio))
