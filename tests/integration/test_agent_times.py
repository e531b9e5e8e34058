"""The time that a hook adds to a prompt, and the rate at which transcripts are imported."""

from __future__ import annotations

import getpass
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest

from tests.integration.coding_agent import CodingAgent, end_services, hook_services
from tests.integration.command import Zettel
from tests.integration.test_agent_recall import PROMPTS
from zettel import Memory, Scope
from zettel.transcripts import choose
from zettel.transcripts.projects import project_name

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(1_800)]

MOST_CPU = 0.05
"""Seconds of processor time that a prompt may cost in the hook and in the service together."""
WORDS = (
    "cache index parser client table worker queue socket schema theme report station gauge slot map token image".split()
)

Record = Callable[[str, object], None]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with hook_services(tmp_path):
        yield tmp_path


def statements(count: int) -> list[dict[str, object]]:
    chance = Random(7)
    begin = datetime(2026, 1, 1, tzinfo=timezone.utc)
    verbs = ("uses", "needs", "breaks", "replaced")
    return [
        {
            "content": f"The {chance.choice(WORDS)} of the {chance.choice(WORDS)} {chance.choice(verbs)} the "
            f"{chance.choice(WORDS)} {chance.choice(WORDS)} since version {place}.",
            "role": chance.choice(("user", "assistant")),
            "session": f"s{place // 30}",
            "occurred_at": begin + timedelta(minutes=place),
        }
        for place in range(count)
    ]


def service_seconds(home: Path) -> float:
    """Return the processor time of the hook service so far."""
    (lock,) = (home / ".zettel" / "hooks").glob("*.lock")
    fields = Path(f"/proc/{int(lock.read_text())}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_time_that_a_prompt_waits(
    home: Path, zettel: Zettel, request: pytest.FixtureRequest, record_property: Record
) -> None:
    notes, rounds = (5_000, 4) if request.config.getoption("soak") else (300, 1)
    project = home / "project"
    project.mkdir()
    store = home / "agents.db"
    scope = Scope(user=getpass.getuser(), agent=project_name(str(project)))
    with Memory(store) as memory:
        memory.add_many(statements(notes), scope=scope)
        memory.flush(scope=scope)
    assert zettel("connect", "claude-code", "--store", str(store), "--yes").status == 0
    cold = []
    for _ in range(rounds):
        cold.append(
            CodingAgent("claude-code", home, project, "s").run("UserPromptSubmit", prompt=PROMPTS[0][1]).seconds
        )
        CodingAgent("claude-code", home, project, "s").start()
        end_services(home)
    agent = CodingAgent("claude-code", home, project, "now")
    agent.start()
    agent.run("UserPromptSubmit", prompt=PROMPTS[0][1])
    before = service_seconds(home), children_seconds()
    times = sorted(agent.run("UserPromptSubmit", prompt=prompt).seconds for _, prompt, _ in PROMPTS * rounds)
    used = service_seconds(home) - before[0], children_seconds() - before[1]
    record_property("notes", notes)
    record_property("prompts", len(times))
    record_property("warm_ms", [round(1_000 * times[int(len(times) * share)]) for share in (0.5, 0.95)])
    record_property("cold_ms", [round(1_000 * seconds) for seconds in sorted(cold)])
    record_property("cpu_ms", [round(1_000 * seconds / len(times), 1) for seconds in used])
    assert sum(used) / len(times) <= MOST_CPU


def test_the_rate_of_reading_transcripts(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Record
) -> None:
    megabytes = 100 if request.config.getoption("soak") else 2
    chance = Random(7)
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[2].glob("zettel/*/*.py"))
    )
    path = tmp_path / "session.jsonl"
    size = lines = 0
    with path.open("w", encoding="utf-8") as file:
        while size < megabytes * 1_000_000:
            at, length = chance.randrange(len(code) - 20_000), int(min(20_000, chance.lognormvariate(7.5, 1.2)))
            base = {"parentUuid": None, "isSidechain": False, "cwd": "/p", "sessionId": f"s{lines // 200}"}
            for kind, content in (
                ("assistant", [{"type": "thinking", "thinking": code[at : at + 400], "signature": "E" * 600}]),
                ("assistant", [{"type": "tool_use", "id": f"t{lines}", "name": "Bash", "input": {"command": "ls"}}]),
                ("user", [{"type": "tool_result", "tool_use_id": f"t{lines}", "content": code[at : at + length]}]),
                ("assistant", [{"type": "text", "text": code[at : at + 300]}]),
            ):
                message = {"role": kind, "content": content}
                line = {
                    **base,
                    "type": kind,
                    "uuid": f"u{lines}",
                    "message": message,
                    "timestamp": "2026-11-06T09:00:00Z",
                }
                extra = {"toolUseResult": {"stdout": content[0]["content"]}} if kind == "user" else {}
                lines += 1
                size += file.write(json.dumps({**line, **extra}) + "\n")
    began, cpu = time.perf_counter(), time.process_time()
    count = sum(1 for _ in choose(path).read(path))
    record_property("megabytes", megabytes)
    record_property("events", count)
    record_property("seconds", round(time.perf_counter() - began, 2))
    used = time.process_time() - cpu
    record_property("cpu_seconds", round(used, 2))
    assert megabytes / used * 60 >= 100
