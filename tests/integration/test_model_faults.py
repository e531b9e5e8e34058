"""Thousands of faults of a model and its service, over real HTTP: no event is lost, and no note says what no valid
answer said of it.

The server keeps a ledger of what it validly said of which note, each time in other words, so that whatever stands in a
note can be told to come from one answer about this very note.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.model_server import Fault, ModelServer, now_and_then
from tests.scripted_model import reply
from zettel import Kind, LiteLLM, LiteLLMAnnotator, Memory, Note, Revision
from zettel.core import follow_ups as queue
from zettel.errors import JobFailed
from zettel.llm.prompt_lines import short_ids
from zettel.model import JobKind

pytestmark = [
    pytest.mark.integration,
    # LiteLLM leaves a coroutine behind where a request is given up before it was sent.
    pytest.mark.filterwarnings("ignore:coroutine '.*acompletion' was never awaited:RuntimeWarning"),
]

FAULTS = 10_000
FAULTS_A_STORE = 500
SHARE = 0.9  # of all requests
TURNS, SESSION = 40, 10
BATCH = 5  # turns read together: more requests for the same work
CONCURRENCY = 16  # requests at once
PATIENCE = 0.5  # seconds of the client, and twice that of a server that hangs
ROUNDS = 60  # of jobs that are made to run again, at most
FLUSH = 300.0  # seconds

_KEY = re.compile(r"(?:summary|fact|crate) \d+(?:\.\d+)?", re.IGNORECASE)


class Said(NamedTuple):
    """What an answer said of a turn."""

    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    importance: float


class Ledger(ModelServer):
    """A server that says something new each time, and keeps what of it was valid."""

    def __init__(self, plan: Callable[[], Fault | None], seed: int) -> None:
        super().__init__(self._reply, plan, hang=2 * PATIENCE, seed=seed)
        self.notes: dict[str, list[Said]] = {}
        self.links: dict[str, tuple[str, str]] = {}
        self.summaries: set[str] = set()
        self.facts: set[str] = set()
        self._serial = 0
        self._ids: list[str] = []

    def said(self, request: dict[str, Any], fault: Fault | None) -> str:
        asked = str(request["messages"][-1]["content"])
        about_links = asked.startswith("notes:")
        self.id_key = self._random.choice(["from", "to"]) if about_links else "id"
        shown = {item["id"]: key(item.get("text") or item["note"]) for item in asked_lines(asked) if "id" in item}
        text = super().said(request, fault)
        if fault is Fault.WRONG_ID and (strangers := sorted(set(self._ids) - shown.keys())):
            text = text.replace('"zz99"', json.dumps(self._random.choice(strangers)))  # the id of another note
        self._ids += shown
        if fault not in (Fault.EMPTY, Fault.RUBBISH, Fault.ECHO):
            self._enter(text, shown, about_links)
        return text

    def _enter(self, text: str, shown: dict[str, str], about_links: bool) -> None:
        """Take down what stands in a text, also one that was cut: whole items about what was shown."""
        found = [json.loads(item) for item in re.findall(r"\{[^{}]*\}", text)]
        times = Counter(item.get("id") for item in found)
        for item in found:
            if about_links and shown.keys() >= {item.get("from"), item.get("to")}:
                self.links[item["reason"]] = (shown[item["from"]], shown[item["to"]])
            elif times[item.get("id")] == 1 and item.get("id") in shown and "facts" in item:
                said = Said(item["context"], *(tuple(item[name]) for name in ("keywords", "tags")), item["importance"])
                self.notes.setdefault(shown[item["id"]], []).append(said)
                self.facts.update(item["facts"])
        self.summaries.update(re.findall(r'"(Summary \d+: [^"]*)"', text))

    def _reply(self, request: dict[str, Any]) -> str:
        asked = str(request["messages"][-1]["content"])
        self._serial += 1
        if asked.startswith("notes:"):
            return json.dumps({"links": list(self._linked(asked))})
        notes = []
        for item in asked_lines(asked.partition("items:\n")[2]):
            crate = key(item["text"])
            notes.append(
                {
                    "id": item["id"],
                    "context": f"{item['by']} tells what {crate} holds (answer {self._serial}).",
                    "keywords": [crate, f"answer {self._serial}"],
                    "tags": ["harbour", f"tag {self._serial}"],
                    "importance": self._serial % 100 / 100 or 0.5,
                    "kind": "episodic",
                    "facts": [f"Fact {self._serial}.{crate[6:]}: {crate} is known."] if crate[-1] in "05" else [],
                }
            )
        return json.dumps({"notes": notes, "summary": f"Summary {self._serial}: crates are counted."})

    def _linked(self, asked: str) -> Iterator[dict[str, str]]:
        for number, note in enumerate(asked_lines(asked.partition("notes:\n")[2].partition("others:\n")[0])):
            if note.get("to"):
                to = self._random.choice(note["to"])
                yield {"from": note["id"], "to": to, "type": "RELATES", "reason": f"link {self._serial}.{number}"}


def asked_lines(asked: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in asked.splitlines() if line.startswith("{")]


def key(text: str) -> str:
    """What a note is known by, in its own words and in a model's."""
    match = _KEY.search(text)
    assert match is not None, text
    return match[0].lower()


def turns(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{n}",
            "speaker": "Ida",
            "session": f"s{n // SESSION}",
            "content": f"Crate {n} holds lamp number {n} and {n % 7} ropes.",
        }
        for n in range(first, first + count)
    ]


def model(server: ModelServer, timeout: float = PATIENCE) -> LiteLLM:
    return LiteLLM("openai/faulty", api_base=server.url, api_key="none", timeout=timeout, concurrency=CONCURRENCY)


def work_off(memory: Memory, until: Callable[[], bool]) -> None:
    """Have failed jobs run again and again, until all are done or enough has happened."""
    for _ in range(ROUNDS):
        with suppress(JobFailed):
            memory.flush(timeout=FLUSH)
            return
        if until():
            return
        memory.retry_jobs()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are tried again almost at once."""
    monkeypatch.setattr(queue, "FIRST_PAUSE", queue.FIRST_PAUSE / 500)


@pytest.mark.soak
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("hurried")
def test_faults_lose_no_event_and_change_no_note_that_no_valid_answer_named(
    tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    met: Counter[Fault] = Counter()
    told: Counter[str] = Counter()
    wrong: list[str] = []
    count = soak_scale(FAULTS)
    while sum(met.values()) < count:
        wanted = min(FAULTS_A_STORE, count - sum(met.values()))
        url = tmp_path / f"{told['stores']}.db"
        plan = now_and_then(told["stores"], SHARE)
        with (
            Ledger(plan, told["stores"]) as server,
            Memory(url, llm=model(server), annotator=LiteLLMAnnotator(batch=BATCH)) as memory,
        ):
            added = suffer(memory, server, wanted)
            server.plan = lambda: None
            memory.retry_jobs()
            work_off(memory, lambda: False)
            notes = memory.list(limit=100 * added).notes
            keys = {note.id: key(note.content) for note in notes}
            there = {note.content for note in notes if note.kind is Kind.EPISODIC}
            told["events_lost"] += len({turn["content"] for turn in turns(0, added)} - there)
            for note in notes:
                history = memory.history(note.id)
                told["versions_looked_at"] += len(history)
                wrong += [*unsaid(note, history, server), *undecided(note, history, server, keys)]
            assert all("context" in note.authored for note in notes if note.kind is Kind.EPISODIC)
            assert memory.jobs() == []
            assert memory.check() == []
        met += server.faults
        told += Counter(stores=1, events=added, notes=len(notes), requests=server.asked)
    for name in ("stores", "events", "notes", "requests", "versions_looked_at", "events_lost"):
        record_property(name, told[name])
    record_property("notes_changed_that_no_valid_answer_named", len(wrong))
    record_property("faults", {fault.name.lower(): met[fault] for fault in Fault})
    assert told["events_lost"] == 0
    assert wrong == []
    assert min(met[fault] for fault in Fault) > 0


def suffer(memory: Memory, server: Ledger, faults: int) -> int:
    """Add turns and have them worked off until so many things went wrong; how many turns there are."""
    added = 0
    while sum(server.faults.values()) < faults:
        memory.add_many(turns(added, TURNS))
        added += TURNS
        work_off(memory, lambda: sum(server.faults.values()) >= faults)
    return added


def unsaid(note: Note, history: Sequence[Revision], server: Ledger) -> list[str]:
    """What stands in a note or in one of its versions and was not said of it by a valid answer."""
    mine = key(note.content)
    said = server.notes.get(mine, [])
    versions = [revision.change for revision in history if revision.cause.by == JobKind.ANNOTATE and revision.change]
    if "context" in note.authored:
        versions.append(note.model_dump())
    found = [
        f"{mine}: {change['context']}"
        for change in versions
        if not any(
            (change["context"], change["importance"]) == (one.context, one.importance)
            and tuple(change["keywords"]) == one.keywords
            and set(one.tags) <= set(change["tags"])
            for one in said
        )
    ]
    known = {Kind.INSIGHT: server.summaries, Kind.SEMANTIC: server.facts}.get(note.kind)
    if known is not None and note.content not in known:
        found.append(f"nobody said: {note.content}")
    return found


def undecided(note: Note, history: Sequence[Revision], server: Ledger, keys: Mapping[str, str]) -> list[str]:
    """Links of a note for a model's reason that no answer gave for the two."""
    decided = [link for revision in history for link in revision.links if (link.reason or "").startswith("link ")]
    return [
        f"{keys[note.id]} -> {keys.get(link.target)}: {link.reason}"
        for link in decided
        if server.links.get(str(link.reason)) != (keys[note.id], keys.get(link.target))
    ]


@pytest.mark.usefixtures("hurried")
def test_ids_of_other_notes_touch_none_of_them(tmp_path: Path) -> None:
    with ModelServer(reply) as server, Memory(tmp_path / "m.db", llm=model(server, timeout=10)) as memory:
        ids = memory.add_many(turns(0, 20))
        memory.flush(timeout=FLUSH)
        before = [(memory.get(id), memory.history(id)) for id in ids]
        strangers = [*ids, *short_ids(ids).values()]

        def about_others(request: dict[str, Any]) -> str:
            asked = {item["id"] for item in asked_lines(request["messages"][-1]["content"]) if "id" in item}
            items = [{"id": id, "context": "Ida holds a lamp.", "keywords": ["lamp"]} for id in strangers]
            return json.dumps({"notes": [item for item in items if item["id"] not in asked]})

        def from_others(request: dict[str, Any]) -> str:
            asked = str(request["messages"][-1]["content"])
            if not asked.startswith("notes:"):
                return reply(request)
            own, others = (asked_lines(part) for part in asked.split("others:\n"))
            offered = [(note["id"], other["id"]) for note in own for other in others]
            pairs = [(other, note) for note, other in offered]
            pairs += [(note["id"], id) for note in own for id in strangers if id not in note["to"]]
            links = [{"from": one, "to": other, "type": "SUPERSEDES", "reason": "so it is"} for one, other in pairs]
            return json.dumps({"links": links})

        server.reply = about_others
        new = memory.add_many(turns(20, 4))
        with pytest.raises(JobFailed):
            memory.flush(timeout=FLUSH)
        assert [(memory.get(id), memory.history(id)) for id in ids] == before
        assert all(note.authored == () for note in memory.list(limit=1000).notes if note.id in new)
        server.reply = from_others
        memory.retry_jobs()
        memory.flush(timeout=FLUSH)
        assert [(memory.get(id), memory.history(id)) for id in ids] == before
        notes = memory.list(limit=1000).notes
        assert all("noteworthy" in note.keywords for note in notes if note.id in new)
        assert not any(link.reason == "so it is" for note in notes for link in memory.links(note.id))
        assert memory.check() == []
