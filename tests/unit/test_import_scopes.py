"""Scopes by rule: the scope of each event, batching per scope, and isolation."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from zettel import AsyncMemory, Memory, Scope
from zettel.core.remember import EventWriter
from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.transcripts.report import ImportReport
from zettel.transcripts.scopes import MAX_BATCH_CHARACTERS, ScopeBuffer, ScopedEvent, owner_of, scope_of

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
MESSAGES = [
    ("Ann", "yard", "The mast is up."),
    ("Ben", "yard", "At last!"),
    ("Ann", "shed", "The sails are at the loft."),
    ("Ben", "shed", "Since when?"),
    (None, "shed", "The gate was opened."),
    ("Ann", "yard", "The flag is missing."),
]


def lines(messages: Sequence[tuple[str | None, str, str]] = MESSAGES) -> str:
    entries: list[dict[str, Any]] = [
        {
            "content": content,
            "speaker": speaker,
            "occurred_at": (NOON + timedelta(minutes=nth)).isoformat(),
            "metadata": {"channel": channel},
        }
        for nth, (speaker, channel, content) in enumerate(messages)
    ]
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text(lines())
    return path


def contents(memory: Memory, **scope: str) -> list[str]:
    return [event.content for event, _ in memory.dump(scope=Scope(**scope))]


def counts_by_user(report: ImportReport) -> dict[str | None, tuple[int, int, int, int]]:
    return {part.scope.user: (part.added, part.existing, part.revised, part.deleted) for part in report.scopes}


class TestRule:
    def test_scope_by_user_is_the_speaker(self) -> None:
        assert owner_of(Event(content="Hm.", speaker=" Ann "), "user", "chat") == "Ann"
        assert owner_of(Event(content="Hm.", speaker=" "), "user", "chat") is None
        assert owner_of(Event(content="Hm.", speaker="Ann"), None, "chat") is None

    def test_memories_of_mem0_s_agents_belong_to_their_user(self) -> None:
        metadata: dict[str, Any] = {"was": "mem0 memory", "user_id": "edda", "role": "assistant"}
        assert owner_of(Event(content="Hm.", speaker="cook", metadata=metadata), "user", "dump") == "edda"
        assert owner_of(Event(content="Hm.", speaker="Ann", metadata=metadata | {"role": "user"}), "user", "d") == "Ann"

    def test_scope_by_channel_is_the_channel(self) -> None:
        channel = {"server": "Boats", "channel": "yard"}
        assert owner_of(Event(content="Hm.", session="t", metadata=channel), "channel", "chat") == "Boats/yard"
        assert owner_of(Event(content="Hm.", session="t"), "channel", "chat") == "t"
        assert owner_of(Event(content="Hm."), "channel", "chat") == "chat"

    def test_fixed_scope_parts_stay(self) -> None:
        base = Scope(tenant="acme", agent="bot")
        assert base.key != scope_of(base, "Ann").key
        assert scope_of(base, "Ann") == Scope(tenant="acme", user="Ann", agent="bot")
        assert scope_of(base, None) is base


class TestWaiting:
    def test_full_batches_are_written_and_the_fullest_when_too_many_wait(self) -> None:
        waiting = ScopeBuffer(batch=3, max_buffered=4)
        waiting.add([ScopedEvent(Event(content=str(n)), user) for n, user in enumerate("aabab")])
        due = list(waiting.due())
        assert [(user, [event.content for event in events]) for user, events in due] == [("a", ["0", "1", "3"])]
        waiting.add([ScopedEvent(Event(content=user), user) for user in "cddb"])
        assert [(user, len(events)) for user, events in waiting.due()] == [("b", 3)]
        assert Counter({user: len(events) for user, events in waiting.due(all=True)}) == {"c": 1, "d": 2}
        assert list(waiting.due(all=True)) == []

    def test_without_a_rule_nothing_waits(self) -> None:
        waiting = ScopeBuffer(batch=3, max_buffered=0)
        waiting.add([ScopedEvent(Event(content="Hm."))])
        assert [user for user, _ in waiting.due()] == [None]

    def test_long_events_go_in_smaller_batches(self) -> None:
        waiting = ScopeBuffer(batch=3, max_buffered=0)
        half = "x" * (MAX_BATCH_CHARACTERS // 2)
        texts = ["a", half, half, "b", half + half, "c", "d", "e", "f"]
        waiting.add([ScopedEvent(Event(content=content)) for content in texts])
        due = [[event.content for event in events] for _, events in waiting.due()]
        assert due == [texts[:3], texts[3:5], texts[5:8], texts[8:]]


class TestImport:
    def test_each_person_has_a_memory(self, log: Path) -> None:
        with Memory(":memory:", scope=Scope(tenant="acme")) as memory:
            report = memory.import_transcript(log, scope_by="user")
            assert counts_by_user(report) == {"Ann": (3, 0, 0, 0), "Ben": (2, 0, 0, 0), None: (1, 0, 0, 0)}
            assert report.added == 6
            assert contents(memory, tenant="acme", user="Ann") == [text for by, _, text in MESSAGES if by == "Ann"]
            assert contents(memory, tenant="acme", user="Ben") == [text for by, _, text in MESSAGES if by == "Ben"]
            assert contents(memory, tenant="acme") == ["The gate was opened."]
            assert contents(memory) == contents(memory, user="Ann") == []
            ben = Scope(tenant="acme", user="Ben")
            memory.flush()
            hits = memory.search("Where are the sails, and what about the mast?", scope=ben)
            assert {hit.note.speaker for hit in hits} == {"Ben"}

    def test_each_channel_has_a_memory_and_a_second_import_adds_nothing(self, log: Path) -> None:
        with Memory(":memory:") as memory:
            foreseen = memory.import_transcript(log, scope_by="channel", dry_run=True)
            assert memory.scopes() == []
            report = memory.import_transcript(log, scope_by="channel")
            assert counts_by_user(report) == counts_by_user(foreseen) == {"yard": (3, 0, 0, 0), "shed": (3, 0, 0, 0)}
            assert contents(memory, user="shed") == [text for _, channel, text in MESSAGES if channel == "shed"]

            shed = Scope(user="shed")
            (deleted_id,) = (note.id for note in memory.list(scope=shed).notes if note.content == "Since when?")
            memory.delete(deleted_id, scope=shed)
            log.write_text(lines([*MESSAGES, ("Cai", "yard", "Here it is.")]))
            for dry_run in (True, False):
                repeated = memory.import_transcript(log, scope_by="channel", dry_run=dry_run)
                assert counts_by_user(repeated) == {"yard": (1, 3, 0, 0), "shed": (0, 2, 0, 1)}
            assert memory.import_transcript(log, scope_by="channel").added == 0

    def test_equal_messages_in_two_channels_are_two_events(self, tmp_path: Path) -> None:
        path = tmp_path / "log.jsonl"
        (line,) = lines(MESSAGES[:1]).splitlines()
        path.write_text(f"{line}\n{line.replace('yard', 'shed')}\n")
        with Memory(":memory:") as memory:
            for expected in (2, 0):
                assert memory.import_transcript(path, scope_by="channel", dry_run=True).added == expected
                assert memory.import_transcript(path, scope_by="channel").added == expected

    def test_gaps_split_sessions_and_not_scopes(self, tmp_path: Path) -> None:
        path = tmp_path / "WhatsApp Chat with Crew.txt"
        path.write_text("".join(f"{day}/05/2024, 09:15 - Ann: Entry {day}.\n" for day in (13, 14, 15)))
        with Memory(":memory:") as memory:
            report = memory.import_transcript(path, scope_by="channel")
            assert (len(report.scopes), report.sessions) == (1, 3)
            assert report.scopes[0].scope.user == "Crew"

    def test_many_scopes_share_few_transactions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "log.jsonl"
        path.write_text(lines([(f"Person {n % 10}", "yard", f"Entry {n}.") for n in range(600)]))
        sizes: list[int] = []
        remember = EventWriter.remember

        async def counted(self: EventWriter, scope: Scope, events: Sequence[Event], *given: Any) -> Any:
            sizes.append(len(events))
            return await remember(self, scope, events, *given)

        monkeypatch.setattr(EventWriter, "remember", counted)
        with Memory(":memory:") as memory:
            assert memory.import_transcript(path, scope_by="user").added == 600
        assert sizes == [60] * 10

    def test_a_user_scope_cannot_be_combined_with_scope_by_user(self, log: Path) -> None:
        async def import_by_channel() -> None:
            async with AsyncMemory(":memory:", scope=Scope(user="ann")) as memory:
                with pytest.raises(InvalidInput, match="leave the user 'ann' out of scope="):
                    await memory.import_transcript(log, scope_by="channel")

        asyncio.run(import_by_channel())

    def test_redacted_names_never_share_a_memory(self, tmp_path: Path) -> None:
        pytest.importorskip("phonenumbers")
        path = tmp_path / "log.jsonl"
        path.write_text(lines([("+47 912 34 567", "yard", "One."), ("+47 912 34 568", "yard", "Two.")]))
        with Memory(":memory:") as memory:
            report = memory.import_transcript(path, scope_by="user", redact=True)
            assert (report.added, len(report.rejected_records)) == (0, 2)
            assert "map_user" in report.rejected_records[0].reason
            names = {"+47 912 34 567": "Ida"}
            named = memory.import_transcript(path, scope_by="user", redact=True, map_user=names)
            assert counts_by_user(named) == {"Ida": (1, 0, 0, 0)}
            assert memory.import_transcript(path, scope_by="channel", redact=True).added == 2
