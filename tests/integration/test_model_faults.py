"""Thousands of faults of a model over real HTTP: no event is lost, and only valid answers change notes.

The server records its valid answers for each note. Their texts are unique, so that every text in a note can be traced
to one answer about that note.
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

from tests.model_server import Fault, ModelServer, random_plan
from tests.scripted_model import reply
from zettel import Kind, LiteLLM, LiteLLMAnnotator, Memory, Note, Revision
from zettel.core import follow_ups as queue
from zettel.errors import JobFailed
from zettel.llm.prompt_lines import short_ids
from zettel.model import JobKind

pytestmark = [
    pytest.mark.integration,
    # LiteLLM leaves a coroutine behind when a request is cancelled before it is sent.
    pytest.mark.filterwarnings("ignore:coroutine '.*acompletion' was never awaited:RuntimeWarning"),
]

FAULTS = 10_000
FAULTS_A_STORE = 500
SHARE = 0.9  # of all requests fails
TURNS, SESSION = 40, 10
BATCH = 5  # turns per request: a small batch needs more requests
CONCURRENCY = 16  # requests at once
TIMEOUT = 0.5  # seconds for the client; a hanging server waits twice as long
ROUNDS = 60  # most retries of failed jobs
FLUSH = 300.0  # seconds

_KEY = re.compile(r"(?:summary|fact|crate) \d+(?:\.\d+)?", re.IGNORECASE)


class Annotation(NamedTuple):
    """The annotation of a turn in an answer."""

    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    importance: float


class Ledger(ModelServer):
    """A server that answers with unique texts and records the valid ones."""

    def __init__(self, plan: Callable[[], Fault | None], seed: int) -> None:
        super().__init__(self._reply, plan, hang=2 * TIMEOUT, seed=seed)
        self.notes: dict[str, list[Annotation]] = {}
        self.links: dict[str, tuple[str, str]] = {}
        self.summaries: set[str] = set()
        self.facts: set[str] = set()
        self._serial = 0
        self._ids: list[str] = []

    def reply_text(self, request: dict[str, Any], fault: Fault | None) -> str:
        prompt = str(request["messages"][-1]["content"])
        about_links = prompt.startswith("notes:")
        self.id_key = self._random.choice(["from", "to"]) if about_links else "id"
        keys_by_id = {
            item["id"]: key(item.get("text") or item["note"]) for item in prompt_items(prompt) if "id" in item
        }
        text = super().reply_text(request, fault)
        if fault is Fault.WRONG_ID and (other_ids := sorted(set(self._ids) - keys_by_id.keys())):
            text = text.replace('"zz99"', json.dumps(self._random.choice(other_ids)))  # the id of another note
        self._ids += keys_by_id
        if fault not in (Fault.EMPTY, Fault.RUBBISH, Fault.ECHO):
            self._record(text, keys_by_id, about_links)
        return text

    def _record(self, text: str, keys_by_id: dict[str, str], about_links: bool) -> None:
        """Record the complete items about prompted notes in an answer, which may be truncated."""
        items = [json.loads(item) for item in re.findall(r"\{[^{}]*\}", text)]
        times = Counter(item.get("id") for item in items)
        for item in items:
            if about_links and keys_by_id.keys() >= {item.get("from"), item.get("to")}:
                self.links[item["reason"]] = (keys_by_id[item["from"]], keys_by_id[item["to"]])
            elif times[item.get("id")] == 1 and item.get("id") in keys_by_id and "facts" in item:
                annotation = Annotation(
                    item["context"], *(tuple(item[name]) for name in ("keywords", "tags")), item["importance"]
                )
                self.notes.setdefault(keys_by_id[item["id"]], []).append(annotation)
                self.facts.update(item["facts"])
        self.summaries.update(re.findall(r'"(Summary \d+: [^"]*)"', text))

    def _reply(self, request: dict[str, Any]) -> str:
        prompt = str(request["messages"][-1]["content"])
        self._serial += 1
        if prompt.startswith("notes:"):
            return json.dumps({"links": list(self._links(prompt))})
        notes = []
        for item in prompt_items(prompt.partition("items:\n")[2]):
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

    def _links(self, prompt: str) -> Iterator[dict[str, str]]:
        for number, note in enumerate(prompt_items(prompt.partition("notes:\n")[2].partition("others:\n")[0])):
            if note.get("to"):
                to = self._random.choice(note["to"])
                yield {"from": note["id"], "to": to, "type": "RELATES", "reason": f"link {self._serial}.{number}"}


def prompt_items(prompt: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]


def key(text: str) -> str:
    """Return the key of a note, which its content and its annotations contain."""
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


def model(server: ModelServer, timeout: float = TIMEOUT) -> LiteLLM:
    return LiteLLM("openai/faulty", api_base=server.url, api_key="none", timeout=timeout, concurrency=CONCURRENCY)


def finish_jobs(memory: Memory, until: Callable[[], bool]) -> None:
    """Retry failed jobs until all are done or ``until`` returns True."""
    for _ in range(ROUNDS):
        with suppress(JobFailed):
            memory.flush(timeout=FLUSH)
            return
        if until():
            return
        memory.retry_jobs()


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry jobs almost at once."""
    monkeypatch.setattr(queue, "FIRST_PAUSE", queue.FIRST_PAUSE / 500)


@pytest.mark.soak
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("short_pauses")
def test_faults_lose_no_event_and_change_notes_only_by_valid_answers(
    tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    faults: Counter[Fault] = Counter()
    totals: Counter[str] = Counter()
    wrong: list[str] = []
    count = soak_scale(FAULTS)
    while sum(faults.values()) < count:
        fault_count = min(FAULTS_A_STORE, count - sum(faults.values()))
        url = tmp_path / f"{totals['stores']}.db"
        plan = random_plan(totals["stores"], SHARE)
        with (
            Ledger(plan, totals["stores"]) as server,
            Memory(url, llm=model(server), annotator=LiteLLMAnnotator(batch=BATCH)) as memory,
        ):
            added = add_until_faults(memory, server, fault_count)
            server.plan = lambda: None
            memory.retry_jobs()
            finish_jobs(memory, lambda: False)
            notes = memory.list(limit=100 * added).notes
            keys = {note.id: key(note.content) for note in notes}
            stored = {note.content for note in notes if note.kind is Kind.EPISODIC}
            totals["events_lost"] += len({turn["content"] for turn in turns(0, added)} - stored)
            for note in notes:
                history = memory.history(note.id)
                totals["versions_looked_at"] += len(history)
                wrong += [*unknown_annotations(note, history, server), *unknown_links(note, history, server, keys)]
            assert all("context" in note.authored for note in notes if note.kind is Kind.EPISODIC)
            assert memory.jobs() == []
            assert memory.check() == []
        faults += server.faults
        totals += Counter(stores=1, events=added, notes=len(notes), requests=server.asked)
    for name in ("stores", "events", "notes", "requests", "versions_looked_at", "events_lost"):
        record_property(name, totals[name])
    record_property("notes_changed_that_no_valid_answer_named", len(wrong))
    record_property("faults", {fault.name.lower(): faults[fault] for fault in Fault})
    assert totals["events_lost"] == 0
    assert wrong == []
    assert min(faults[fault] for fault in Fault) > 0


def add_until_faults(memory: Memory, server: Ledger, fault_count: int) -> int:
    """Add turns and run their jobs until so many faults have occurred; return the number of turns."""
    added = 0
    while sum(server.faults.values()) < fault_count:
        memory.add_many(turns(added, TURNS))
        added += TURNS
        finish_jobs(memory, lambda: sum(server.faults.values()) >= fault_count)
    return added


def unknown_annotations(note: Note, history: Sequence[Revision], server: Ledger) -> list[str]:
    """Return texts in the versions of a note that no valid answer contains for it."""
    note_key = key(note.content)
    valid = server.notes.get(note_key, [])
    versions = [revision.change for revision in history if revision.cause.by == JobKind.ANNOTATE and revision.change]
    if "context" in note.authored:
        versions.append(note.model_dump())
    problems = [
        f"{note_key}: {change['context']}"
        for change in versions
        if not any(
            (change["context"], change["importance"]) == (annotation.context, annotation.importance)
            and tuple(change["keywords"]) == annotation.keywords
            and set(annotation.tags) <= set(change["tags"])
            for annotation in valid
        )
    ]
    known = {Kind.INSIGHT: server.summaries, Kind.SEMANTIC: server.facts}.get(note.kind)
    if known is not None and note.content not in known:
        problems.append(f"no valid answer contains: {note.content}")
    return problems


def unknown_links(note: Note, history: Sequence[Revision], server: Ledger, keys: Mapping[str, str]) -> list[str]:
    """Return links of a note with a model's reason that no answer gave for the two notes."""
    model_links = [link for revision in history for link in revision.links if (link.reason or "").startswith("link ")]
    return [
        f"{keys[note.id]} -> {keys.get(link.target)}: {link.reason}"
        for link in model_links
        if server.links.get(str(link.reason)) != (keys[note.id], keys.get(link.target))
    ]


@pytest.mark.usefixtures("short_pauses")
def test_answers_about_other_notes_change_none_of_them(tmp_path: Path) -> None:
    with ModelServer(reply) as server, Memory(tmp_path / "m.db", llm=model(server, timeout=10)) as memory:
        ids = memory.add_many(turns(0, 20))
        memory.flush(timeout=FLUSH)
        before = [(memory.get(id), memory.history(id)) for id in ids]
        other_ids = [*ids, *short_ids(ids).values()]

        def annotate_others(request: dict[str, Any]) -> str:
            asked_ids = {item["id"] for item in prompt_items(request["messages"][-1]["content"]) if "id" in item}
            items = [{"id": id, "context": "Ida holds a lamp.", "keywords": ["lamp"]} for id in other_ids]
            return json.dumps({"notes": [item for item in items if item["id"] not in asked_ids]})

        def link_others(request: dict[str, Any]) -> str:
            prompt = str(request["messages"][-1]["content"])
            if not prompt.startswith("notes:"):
                return reply(request)
            new_notes, others = (prompt_items(part) for part in prompt.split("others:\n"))
            offered = [(note["id"], target["id"]) for note in new_notes for target in others]
            pairs = [(target, note) for note, target in offered]
            pairs += [(note["id"], id) for note in new_notes for id in other_ids if id not in note["to"]]
            links = [
                {"from": source, "to": target, "type": "SUPERSEDES", "reason": "so it is"} for source, target in pairs
            ]
            return json.dumps({"links": links})

        server.reply = annotate_others
        new = memory.add_many(turns(20, 4))
        with pytest.raises(JobFailed):
            memory.flush(timeout=FLUSH)
        assert [(memory.get(id), memory.history(id)) for id in ids] == before
        assert all(note.authored == () for note in memory.list(limit=1000).notes if note.id in new)
        server.reply = link_others
        memory.retry_jobs()
        memory.flush(timeout=FLUSH)
        assert [(memory.get(id), memory.history(id)) for id in ids] == before
        notes = memory.list(limit=1000).notes
        assert all("noteworthy" in note.keywords for note in notes if note.id in new)
        assert not any(link.reason == "so it is" for note in notes for link in memory.links(note.id))
        assert memory.check() == []
