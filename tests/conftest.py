"""Fixtures and hooks of all tests: markers, worker processes, repeatable examples, a report of skipped tests."""

from __future__ import annotations

import json
import os
import platform
import signal
from collections import defaultdict
from collections.abc import Callable, Generator
from datetime import datetime, timezone
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import neo4j_servers, processes
from zettel.bench.results import checkout_commit

SERVER_TIMEOUT = 300  # seconds for a test on a Neo4j server, whose first query of each kind is slow
SAMPLE_PERCENT = 2  # the share of a heavy test's full count that an ordinary run takes
SERVER_PERCENT = 1  # on a Neo4j server, with many round trips each

# Both derive their examples from the test itself, so that a run can be repeated.
# No deadline: a busy machine is not a bug.
hypothesis.settings.register_profile("ci", derandomize=True, database=None, deadline=None, max_examples=50)
hypothesis.settings.register_profile("soak", hypothesis.settings.get_profile("ci"), max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run heavy tests at their full counts")
    parser.addoption("--soak-report", type=Path, metavar="FOLDER", help="write the heavy tests' results there, as JSON")


def _is_worker(config: pytest.Config) -> bool:
    """Return whether this is a worker process, whose controller reports."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    # A background child of a shell ignores Ctrl-C, and so would every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.load_profile("soak" if config.getoption("soak") else "ci")
    if config.getoption("soak_report") and not _is_worker(config):
        config.pluginmanager.register(SoakReport(config.getoption("soak_report")))


@pytest.hookimpl(tryfirst=True)  # before -m selects by these markers,
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if processes.is_repeated(item)]
    for_soak = [item for item in items if processes.is_for_soak(item) and not processes.is_repeated(item)]
    for item in items:
        if processes.servers(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SERVER_TIMEOUT))
    if config.getoption("soak"):
        for item in items:
            item.add_marker(pytest.mark.timeout(0), append=False)  # the limits fit the samples
        for item in for_soak:
            item.add_marker(pytest.mark.soak)
    else:
        left_out += for_soak
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = {*left_out}
        items[:] = [item for item in items if item not in dropped]
    if _is_worker(config):
        items.sort(key=processes.rank)
        processes.write_groups(config.workerinput["groups"], items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["groups"] = str(processes.groups_file(node.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return processes.scheduler(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    neo4j_servers.prepare(processes.servers(item))
    return (yield)


def pytest_sessionfinish() -> None:
    neo4j_servers.stop_all()


@pytest.fixture(params=neo4j_servers.EVERY)
def neo4j_server(request: pytest.FixtureRequest) -> neo4j_servers.Server:
    """Return a Neo4j server of each release line, without memories."""
    return neo4j_servers.empty(request.param)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # the only event loop that zettel uses


@pytest.fixture
def soak_scale(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Callable[[int], int]:
    """Return the number of repetitions: `soak_scale(full)` is `full` under --soak, else 2 % of it, on a Neo4j
    server 1 %, but at least 1."""
    percent = SERVER_PERCENT if processes.servers(request.node) else SAMPLE_PERCENT

    def scale(full: int) -> int:
        count = full if request.config.getoption("soak") else max(1, int(full * percent / 100))
        record_property("count", count)
        return count

    return scale


# Report of skipped tests ---------------------------------------------------------------------------------


def _skips_are_failures() -> bool:
    return os.environ.get("ZETTEL_NO_SKIP") == "1"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason of a skip; pytest stores (file, line, "Skipped: reason")."""
    longrepr = report.longrepr
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr).removeprefix("Skipped: ")


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure if skips are forbidden. An expected failure is not a skip."""
    if _skips_are_failures() and report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = f"skipped, and ZETTEL_NO_SKIP=1 forbids it: {_reason(report)}"
        report.outcome = "failed"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the skipped tests of this run by reason."""
    places: dict[str, set[str]] = defaultdict(set)
    for report in terminalreporter.stats.get("skipped", []):
        places[_reason(report)].add(report.nodeid.split("::")[0])
    if places:
        terminalreporter.section("NOT TESTED HERE", sep="!", yellow=True, bold=True)
    for reason, files in sorted(places.items()):
        terminalreporter.line(f"{reason}  [{', '.join(sorted(files))}]", yellow=True)
    for report in terminalreporter.stats.get("passed", []):
        for left_out in (value for name, value in report.user_properties if name == "left_out"):
            terminalreporter.line(str(left_out))


# Reports of soak tests ---------------------------------------------------------------------------------


class SoakReport:
    """Collects the tests marked `soak` with their `record_property` values; one file per module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tests: dict[str, dict[str, Any]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and "soak" in report.keywords:
            path, _, name = report.nodeid.partition("::")
            self.tests[path][name] = {
                "outcome": report.outcome,
                "seconds": round(report.duration, 1),
                **dict(report.user_properties),
            }

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, tests in self.tests.items():
            result = {
                "module": path,
                "full": bool(session.config.getoption("soak")),
                "commit": checkout_commit(),
                "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
                "python": platform.python_version(),
                "versions": _versions(),
                "tests": tests,
            }
            name = Path(path).stem.removeprefix("test_")
            (self.folder / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _versions() -> dict[str, str]:
    """Return the versions of the distributions that affect the results of soak tests."""
    relevant = {"hypothesis", "neo4j", "numpy", "scipy", "torch", "zettel-graph"}
    installed = {dist.metadata["Name"]: dist.version for dist in distributions()}
    return {name: installed[name] for name in sorted(relevant & installed.keys())}
