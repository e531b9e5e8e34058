"""An import that is killed repeatedly ends like an undisturbed one: no record is lost or stored twice."""

from __future__ import annotations

import json
import mmap
import random
import sqlite3
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contract.support import picture
from zettel import Memory
from zettel.transcripts import importing

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
BATCH = 20  # records per transaction and jobs per claim: small, for many writes
RECORDS_PER_KILL = 15  # enough records for all kills
LEASE = 1.0  # seconds after which the jobs of a killed process can be claimed again
TOPICS = ["the harbour", "Kestrel the dog", "a cello lesson", "rye bread", "the night ferry", "Ida's glaciers"]
STATE = struct.Struct("<BBqq")
"""The shared state of the process: inside a write, phase, records acknowledged, writes begun."""
STARTING, IMPORTING, FLUSHING = range(3)

CHILD = """
import mmap, sys
sys.path.insert(0, ".")
from zettel import Memory
from zettel.jobs.work import Work
from zettel.transcripts import importing
from tests.integration.test_import_kills import BATCH, FLUSHING, IMPORTING, LEASE, STATE
path, transcript, state, runner = sys.argv[1:]
options = {"runner": runner or None}
lanes = Work.lanes
Work.lanes = lambda self: [lane._replace(claim=BATCH, lease=LEASE) for lane in lanes(self)]
importing.BATCH = BATCH
with open(state, "r+b") as file, mmap.mmap(file.fileno(), STATE.size) as shared, Memory(path, **options) as memory:
    fields = [0, 0, 0, 0]
    def set_field(place, value):
        fields[place] = value
        shared[:] = STATE.pack(*fields)
    store = memory._bridge.inner._backend.memory.engine.store
    apply = store.apply
    async def watched(batch):
        set_field(3, fields[3] + 1)
        set_field(0, 1)
        await apply(batch)
        set_field(0, 0)
    store.apply = watched
    set_field(1, IMPORTING)
    report = memory.import_transcript(transcript, on_progress=lambda done, total: set_field(2, done))
    assert not report.rejected_records and not report.revised, report
    set_field(1, FLUSHING)
    memory.flush()
"""


class State(NamedTuple):
    """The state of a process when it was killed."""

    inside: bool
    phase: int
    acknowledged: int
    writes: int


def transcript(path: Path, records: int) -> list[str]:
    """Write records with an id, a time or neither, some with equal text; return the contents."""
    rng = random.Random(7)
    lines, contents = [], []
    for n in range(records):
        content = f"Number {n % 300}: {rng.choice(TOPICS)} again, and {rng.choice(TOPICS)}."
        record: dict[str, Any] = {"speaker": ("Ann", "Bob")[n % 2], "session": f"s{n // 40}", "content": content}
        if n % 3 == 0:
            record["id"] = f"t{n}"
        if n % 3 == 1:
            record["occurred_at"] = f"2024-{1 + n // 400:02}-01T10:{n // 8 % 40:02}:00Z"
        for _ in range(1 if n % 7 else 2 - (n % 3 == 0)):  # an id names one record
            lines.append(json.dumps(record))
            contents.append(content)
    path.write_text("\n".join(lines))
    return contents


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("runner", [None, "process"])
def test_a_killed_import_loses_and_doubles_nothing(
    tmp_path: Path,
    runner: str | None,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kills = soak_scale(200)
    file = tmp_path / "talk.jsonl"
    contents = transcript(file, RECORDS_PER_KILL * kills)
    monkeypatch.setattr(importing, "BATCH", BATCH)
    with Memory(tmp_path / "undisturbed.db") as memory:
        memory.import_transcript(file)
        memory.flush()
        undisturbed = picture(memory)
    rng = random.Random(42)
    states: list[State] = []
    lost = doubled = imports = 0
    while len(states) < kills or imports == 0:
        path, kill = tmp_path / f"{imports}.db", None
        if len(states) < kills:
            kill = run_and_kill(path, file, runner, rng, in_write=len(states) % 4 != 3)
        else:
            run(path, file, runner).wait()
        if kill is not None:
            states.append(kill)
            require_acknowledged(path, kill)
            continue
        imports += 1
        with Memory(path) as memory:
            stored = Counter(record.content for record, _ in memory.dump())
            lost += (Counter(contents) - stored).total()
            doubled += (stored - Counter(contents)).total()
            assert memory.jobs() == []
            assert memory.check() == []
            assert picture(memory) == undisturbed
    phases = Counter(kill.phase for kill in states)
    for name, value in {
        "records": len(contents), "kills": len(states), "kills_inside_a_write": sum(kill.inside for kill in states),
        "kills_while_starting": phases[STARTING], "kills_while_importing": phases[IMPORTING],
        "kills_while_flushing": phases[FLUSHING], "imports_ended": imports, "events_lost": lost,
        "events_doubled": doubled,
    }.items():  # fmt: skip
        record_property(name, value)
    assert (lost, doubled) == (0, 0)
    assert 2 * sum(kill.inside for kill in states) >= kills


def run(path: Path, file: Path, runner: str | None) -> subprocess.Popen[bytes]:
    state = path.with_suffix(".state")
    state.write_bytes(bytes(STATE.size))
    command = [sys.executable, "-W", "error", "-c", CHILD, str(path), str(file), str(state), runner or ""]
    return subprocess.Popen(command, cwd=ROOT)


def run_and_kill(path: Path, file: Path, runner: str | None, rng: random.Random, *, in_write: bool) -> State | None:
    """Continue the import and kill -9 it at a random moment; return its state, or None if it ended before."""
    process = run(path, file, runner)
    writes = rng.randint(0, 5)
    with path.with_suffix(".state").open("rb") as shared:
        shared_state = mmap.mmap(shared.fileno(), STATE.size, access=mmap.ACCESS_READ)
        while process.poll() is None:
            state = State(*STATE.unpack(shared_state[:]))
            if state.writes >= writes and (state.inside or not in_write):
                break
            time.sleep(0.0001)
        time.sleep(rng.random() * (0.002 if in_write else 0.1))
        process.kill()
        status = process.wait()
        assert status in (-9, 0)
        return None if status == 0 else State(*STATE.unpack(shared_state[:]))


def require_acknowledged(path: Path, kill: State) -> None:
    """Check that the acknowledged records are stored."""
    with closing(sqlite3.connect(path)) as store:
        (stored,) = store.execute("SELECT COUNT(*) FROM events").fetchone() if kill.writes else (0,)
    assert stored >= kill.acknowledged
