"""Durability: events that `add` acknowledged survive kill -9 at any moment, and an import can be resumed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import picture
from zettel import Memory

CHILD = Path(__file__).with_name("importing_child.py")
ROOT = Path(__file__).parents[2]
EVENTS = 400
TOPICS = ["the harbour", "Kestrel the dog", "a cello lesson", "rye bread", "the night ferry", "Ida's glaciers"]


def long_conversation() -> list[dict[str, Any]]:
    chosen = random.Random(7)
    return [
        {
            "id": f"t{n}",
            "speaker": ["Ann", "Bob"][n % 2],
            "session": f"s{n // 40}",
            "occurred_at": f"2024-{1 + n // 40:02}-01T10:{n % 40:02}:00Z",
            "title": f"Topic {n}" if n % 25 == 0 else None,
            "content": f"Number {n}: {chosen.choice(TOPICS)} again, and {chosen.choice(TOPICS)}. "
            f"See Topic {25 * chosen.randrange(16)}.",
        }
        for n in range(EVENTS)
    ]


@pytest.mark.soak
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_kills_lose_no_acknowledged_event(
    url: Any, tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    """An import that is killed repeatedly ends with the same store as an undisturbed import."""
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps(event) + "\n" for event in long_conversation()))
    with Memory(tmp_path / "undisturbed.db") as memory:
        memory.add_many(long_conversation())
        memory.flush()
        undisturbed = picture(memory)
    kills, inside = soak_scale(200), 0
    chosen = random.Random(42)
    for kill in range(kills):
        hit_inside = kill_an_import(url, tmp_path, events, chosen, in_write=kill % 4 != 3)
        inside += hit_inside
        require_acknowledged(url, tmp_path / "acknowledged")
        if kill % 10 == 9:  # start again, so that kills hit all stages of an import
            with Memory(url) as memory:
                memory.delete_scope()
            (tmp_path / "acknowledged").unlink()
    record_property("kills", kills)
    record_property("kills_inside_a_write", inside)
    assert inside * 2 >= kills
    finished = subprocess.run(child(url, tmp_path, events), cwd=ROOT, capture_output=True, text=True, check=True)
    assert finished.stdout == "done\n"
    with Memory(url) as memory:
        assert memory.jobs() == []
        assert memory.check() == []
        assert picture(memory) == undisturbed


def child(url: Any, folder: Path, events: Path) -> list[str]:
    (folder / "flag").write_bytes(b"\0")
    code = (
        "import sys, runpy; sys.path.insert(0, '.'); sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return [
        sys.executable,
        "-c",
        code,
        str(CHILD),
        str(url),
        str(folder / "flag"),
        str(folder / "acknowledged"),
        str(events),
    ]


def kill_an_import(url: Any, folder: Path, events: Path, chosen: random.Random, *, in_write: bool) -> bool:
    """Start an import and kill -9 it after a while; return whether the kill hit a write."""
    process = subprocess.Popen(child(url, folder, events), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    flag, acknowledged = folder / "flag", folder / "acknowledged"
    began = acknowledged.stat().st_size if acknowledged.exists() else 0
    further = chosen.randrange(0, 120)
    while process.poll() is None:
        size = acknowledged.stat().st_size if acknowledged.exists() else 0
        if size - began >= further and (not in_write or flag.read_bytes() == b"\1"):
            break
        time.sleep(0.0002)
    if not in_write:
        time.sleep(chosen.random() * 0.02)
    process.kill()
    hit = flag.read_bytes() == b"\1"
    _, errors = process.communicate()
    assert process.returncode in (-9, 0), errors.decode()
    return hit


def require_acknowledged(url: Any, acknowledged: Path) -> None:
    acknowledged_ids = acknowledged.read_text().split() if acknowledged.exists() else []
    by_id = {event["id"]: event["content"] for event in long_conversation()}
    with Memory(url) as memory:
        stored = {record.external_id: record.content for record, _ in memory.dump()}
    assert {id: stored.get(id) for id in acknowledged_ids} == {id: by_id[id] for id in acknowledged_ids}


def test_added_events_are_visible_to_the_next_process(url: Any) -> None:
    with Memory(url) as memory:
        id = memory.add(
            "The spare key is under the blue pot.", payload={"pi": 3.5, "list": [1, None, "ä"], "big": 2**70}
        )
    code = (
        "import sys; from zettel import Memory; m = Memory(sys.argv[1]); "
        "print(m.search('Where is the spare key?')[0].note.id); m.close()"
    )
    run = subprocess.run([sys.executable, "-c", code, str(url)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == id
    with Memory(url) as memory:
        event = memory.get(memory.get(id).event_ids[0])
        assert event.payload == {"pi": 3.5, "list": [1, None, "ä"], "big": 2**70}


def test_unfinished_jobs_are_done_by_the_next_process(url: Any) -> None:
    with Memory(url) as memory:
        memory.add_many(
            [{"content": f"Kestrel the dog howls at the moon, {n} times.", "id": str(n)} for n in range(30)]
        )
    with Memory(url) as memory:
        memory.flush(timeout=60)
        assert memory.jobs() == []
        assert sum(bool(memory.links(note.id)) for note in memory.list().notes) == 30
