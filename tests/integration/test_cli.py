"""The command line as people use it: every command, both forms of answer, and one clear line for every mistake."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.integration.command import Zettel
from zettel.cli.app import COMMANDS, app
from zettel.cli.common import move_common_options_first

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
MAIN = "from zettel.cli import main; main()"

CHAT = """\
[2024-05-01 09:00] Ann: I moved to Oslo last week, the flat looks over the harbour.
[2024-05-01 09:01] Ben: Congratulations! Is the piano there already?
[2024-05-01 09:02] Ann: The piano comes on Friday with my brother Nils.
[2024-05-08 18:30] Ben: How is the piano doing in Oslo?
[2024-05-08 18:31] Ann: Out of tune, Nils dropped it on the stairs.
"""


@pytest.fixture
def chat(tmp_path: Path) -> str:
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    return "chat.txt"


def process(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command_at(path: list[str]) -> Any:
    found: Any = typer.main.get_command(app)
    for name in path:
        found = found.commands[name]
    return found


def paths(above: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """The names of every command, below those of its group."""
    for name, command in command_at([*above]).commands.items():
        yield from paths((*above, name)) if hasattr(command, "commands") else [[*above, name]]


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_has_an_example(self, zettel: Zettel, command: str) -> None:
        ran = zettel(command, "--help")
        assert ran.status == 0
        assert "Example" in ran.out
        assert f"zettel {command}" in ran.out
        assert "--store" in ran.out

    def test_without_a_command_it_shows_all(self, zettel: Zettel) -> None:
        ran = zettel()
        assert ran.status == 0
        assert set(COMMANDS) <= set(ran.out.split())
        assert "..." not in ran.out.partition("Commands:")[2], "a first line is cut off"

    def test_version(self, zettel: Zettel) -> None:
        assert zettel("--version").out.startswith("zettel ")

    def test_help_loads_no_engine(self) -> None:
        code = (
            "import sys; from zettel.cli.app import run; run(['--help'])\n"
            "print(*sys.modules, file=sys.stderr)"
        )  # fmt: skip
        done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
        loaded = set(done.stderr.split())
        assert loaded.isdisjoint({"numpy", "faiss", "scipy", "torch", "zettel.memory", "zettel.model"})


class TestOptionsEverywhere:
    def test_they_move_to_the_front(self) -> None:
        assert move_common_options_first(["search", "q", "--json", "--store", "a.db", "--user=ann"]) == [
            "--json", "--store", "a.db", "--user=ann", "search", "q",
        ]  # fmt: skip

    def test_what_follows_two_dashes_stays(self) -> None:
        assert move_common_options_first(["add", "--", "--json"]) == ["add", "--", "--json"]

    def test_bench_keeps_its_own_json(self) -> None:
        assert move_common_options_first(["bench", "locomo", "x", "--json", "f"]) == [
            "bench",
            "locomo",
            "x",
            "--json",
            "f",
        ]

    @pytest.mark.parametrize("path", [*paths()], ids=" ".join)
    def test_json_may_stand_behind_every_command(self, path: list[str]) -> None:
        own = any(one.name == "json" for one in command_at(path).params)  # it takes a file
        assert move_common_options_first([*path, "--json"]) == ([*path, "--json"] if own else ["--json", *path])

    def test_before_and_after_are_the_same(self, zettel: Zettel) -> None:
        made = zettel("add", "Snow fell.", "--store", "a.db", "--user", "ann", "--json").json()["id"]
        assert zettel("--store", "a.db", "--user", "ann", "--json", "show", made).json()["content"] == "Snow fell."

    def test_store_from_the_environment(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("ZETTEL_STORE", "elsewhere.db")
        zettel("add", "Snow fell.")
        assert (tmp_path / "elsewhere.db").exists()

    def test_a_file_may_be_named_by_its_address(self, zettel: Zettel, tmp_path: Path) -> None:
        address = (tmp_path / "by address.db").as_uri()
        ran = zettel("search", "x", "--store", address)
        assert (ran.status, "there is no store" in ran.err, list(tmp_path.iterdir())) == (1, True, [])
        zettel("add", "The door is green.", "--store", address)
        assert zettel("stats", "--store", address, "--json").json()["bytes"] > 0

    @pytest.mark.parametrize("part", ["--tenant", "--user", "--agent"])
    def test_an_empty_part_of_a_scope_is_refused(self, zettel: Zettel, tmp_path: Path, part: str) -> None:
        ran = zettel("add", "Snow fell.", part, "")
        assert (ran.status, ran.out, list(tmp_path.iterdir())) == (2, "", [])
        assert f"{part}: the name is empty" in ran.err

    def test_scopes_are_apart(self, zettel: Zettel) -> None:
        made = zettel("add", "Snow fell.", "--user", "ann").out.strip()
        ran = zettel("show", made, "--user", "ben")
        assert (ran.status, ran.out) == (1, "")


class TestImporting:
    def test_a_second_import_adds_nothing(self, zettel: Zettel, chat: str) -> None:
        first, second = zettel("import", chat, "--json").json(), zettel("import", chat, "--json").json()
        assert (first["format"], first["added"], first["existing"], first["rejected_records"]) == ("plain", 5, 0, [])
        assert (second["added"], second["existing"]) == (0, 5)

    def test_changed_content_is_a_revision(self, zettel: Zettel, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text('{"id": "1", "content": "Snow."}\n')
        zettel("import", "a.jsonl")
        path.write_text('{"id": "1", "content": "Rain."}\n')
        assert zettel("import", "a.jsonl", "--json").json()["revised"] == 1
        (hit,) = zettel("search", "rain", "--json").json()
        assert hit["note"]["content"] == "Rain."
        history = zettel("history", hit["note"]["id"]).out
        assert "- content: Snow." in history
        assert "+ content: Rain." in history

    def test_what_was_deleted_stays_deleted(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        (first, *_) = zettel("search", "Who moved to Oslo?", "-k", "1", "--json").json()
        assert zettel("delete", first["note"]["id"], "--yes").status == 0
        report = zettel("import", chat, "--json").json()
        assert (report["added"], report["existing"], report["deleted"]) == (0, 4, 1)

    def test_the_table_tells_what_was_rejected(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"content": "Snow."}\n{"content": "cut o')
        ran = zettel("import", "a.jsonl")
        assert (ran.status, ran.err.count("\n")) == (1, 1)
        assert "rejected 1 of 2 records, the others are stored; the first is a.jsonl:2: " in ran.err
        assert "1  added" in ran.out
        assert "1  rejected" in ran.out
        assert "a.jsonl:2: " in ran.out

    @pytest.mark.parametrize(
        ("third", "told"),
        [
            ({"content": "nul \x00 here"}, "NUL"),
            ({"content": "x" * 2_000_000}, "2,000,000 bytes"),
            ({"content": "x", "occurred_at": "2024-02-30"}, "occurred_at"),
        ],
    )
    def test_one_bad_line_costs_only_itself(
        self, zettel: Zettel, tmp_path: Path, third: dict[str, str], told: str
    ) -> None:
        lines = [{"id": str(n), "content": f"Boat {n} left."} | (third if n == 3 else {}) for n in range(1, 6)]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
        ran = zettel("import", "a.jsonl", "--json")
        report = json.loads(ran.out)
        assert (ran.status, report["added"], len(report["rejected_records"])) == (1, 4, 1)
        assert (report["rejected_records"][0]["file"], report["rejected_records"][0]["position"]) == ("a.jsonl", "3")
        assert told in report["rejected_records"][0]["reason"]
        assert "a.jsonl:3: " in ran.err
        assert zettel("stats", "--json").json()["notes"] == 4

    def test_nothing_to_remember(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("")
        ran = zettel("import", "a.jsonl", "--format", "jsonl")
        assert (ran.status, "a.jsonl contains no events" in ran.err) == (1, True)

    def test_one_conversation_of_several(self, zettel: Zettel, tmp_path: Path) -> None:
        talks = [
            {"sample_id": name, "conversation": {"session_1": [{"speaker": "A", "text": name, "dia_id": "D1:1"}]}}
            for name in ("pond", "lake")
        ]
        (tmp_path / "both.json").write_text(json.dumps(talks))
        assert zettel("import", "both.json", "--conversation", "lake", "--json").json()["added"] == 1
        assert zettel("import", "both.json", "--json").json()["added"] == 1
        ran = zettel("import", "both.json", "--conversation", "sea")
        assert (ran.status, "'sea'" in ran.err) == (1, True)

    def test_export_and_import_again(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        assert zettel("export", "out.jsonl").err == "5 events written to out.jsonl\n"
        assert zettel("import", "out.jsonl", "--json").json()["existing"] == 5
        report = zettel("import", "out.jsonl", "--store", "copy.db", "--json").json()
        assert (report["added"], report["rejected_records"]) == (5, [])
        one, two = zettel("export").out.splitlines(), zettel("export", "--store", "copy.db").out.splitlines()
        keys = ("content", "speaker", "occurred_at", "session")
        said = [{key: json.loads(line)[key] for key in keys} for line in one]
        assert said == [{key: json.loads(line)[key] for key in said[0]} for line in two]

    def test_ctrl_c_loses_nothing(self, tmp_path: Path) -> None:
        lines = [json.dumps({"content": f"Boat {n} left harbour {n % 7}.", "id": str(n)}) for n in range(20_000)]
        (tmp_path / "many.jsonl").write_text("\n".join(lines))
        store = tmp_path / "zettel.db"
        importing = process("import", "many.jsonl", cwd=tmp_path)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not store.exists():
            time.sleep(0.02)
        time.sleep(2)
        importing.send_signal(signal.SIGINT)
        out, err = importing.communicate(timeout=60)
        assert (importing.returncode, out) == (130, "")
        assert err == "zettel: interrupted; stored data is safe, and running the same command again continues\n"
        counting = process("stats", "--json", cwd=tmp_path)
        stored = json.loads(counting.communicate(timeout=60)[0])["notes"]
        assert 0 < stored < 20_000
        assert stored % 500 == 0, "only whole batches"


class TestAsking:
    def test_search_as_a_table(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        ran = zettel("search", "Where did Ann move?", "-k", "2")
        assert ran.status == 0
        assert "Oslo" in ran.out
        assert "2024-05-01" in ran.out
        assert "sources" not in ran.out

    def test_explained(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        ran = zettel("search", "Where did Ann move?", "--explain")
        assert all(word in ran.out for word in ("sources", "features", "scorer"))

    @pytest.mark.parametrize("columns", [80, 160])
    def test_it_reads_well(self, zettel: Zettel, chat: str, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        """A line with score, time, speaker and id, then the text over the full width, then the reasons."""
        monkeypatch.setenv("COLUMNS", str(columns))
        zettel("add", "It is forty feet long.", "--title", "Blue Heron", "--speaker", "Ann")
        made = zettel("add", "Blue Heron " + "was carried upstairs by four strong people " * 5).out.strip()
        zettel("import", chat)
        for arguments in (["search", "piano", "--explain"], *([name, made] for name in ("links", "show", "history"))):
            lines = zettel(*arguments).out.splitlines()
            assert max(map(len, lines)) <= columns
            assert lines == [line.rstrip() for line in lines]
        lines = zettel("search", "Who dropped it on the stairs?", "-k", "1").out.splitlines()
        assert re.fullmatch(r"[01]\.\d\d  2024-05-08 18:31  Ann  n_\w+", lines[0])
        assert lines[1] == "      Out of tune, Nils dropped it on the stairs."

    def test_as_json(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        hits = zettel("search", "Who dropped the piano?", "--speaker", "Ann", "-k", "3", "--json").json()
        assert {hit["note"]["speaker"] for hit in hits} == {"Ann"}
        assert all(0 <= hit["score"] <= 1 for hit in hits)

    def test_dates_bound_what_is_found(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        hits = zettel("search", "piano", "--since", "2024-05-02", "--json").json()
        assert {hit["note"]["occurred_at"][:10] for hit in hits} == {"2024-05-08"}

    def test_context(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        assert "Oslo" in zettel("context", "Where did Ann move?", "--max-tokens", "200").out


class TestNotes:
    def test_a_note_with_all_it_has(self, zettel: Zettel) -> None:
        made = zettel(
            "add", "The mast is oak.", "--speaker", "Ann", "--at", "2024-05-01T09:00Z", "--title", "Mast",
            "--session", "yard", "--meta", "project=boat", "--meta", "length=7",
        ).out.strip()  # fmt: skip
        shown = zettel("show", made, "--json").json()
        assert (shown["speaker"], shown["title"], shown["session"]) == ("Ann", "Mast", "yard")
        assert shown["metadata"] == {"project": "boat", "length": 7}
        assert "The mast is oak." in zettel("show", made).out
        assert zettel("show", shown["event_ids"][0], "--json").json()["content"] == "The mast is oak."

    def test_text_from_stdin(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
        import io

        monkeypatch.setattr(sys, "stdin", io.StringIO("From a pipe."))
        made = zettel("add", "-").out.strip()
        assert zettel("show", made, "--json").json()["content"] == "From a pipe."

    def test_stdin_in_another_encoding_is_told(self, tmp_path: Path) -> None:
        env = os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": "utf-8"}  # strict, as in most terminals
        command = [sys.executable, "-c", MAIN, "add", "-"]
        ran = subprocess.run(command, cwd=tmp_path, env=env, input=b"caf\xe9", capture_output=True)
        assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (1, b"", 1)
        assert ran.stderr.startswith(b"zettel: stdin is not utf-8 (byte 4,")
        assert list(tmp_path.iterdir()) == []

    def test_links(self, zettel: Zettel) -> None:
        old = zettel("add", "It is forty feet long.", "--title", "Blue Heron").out.strip()
        new = zettel("add", "We painted Blue Heron today.").out.strip()
        found = zettel("links", new, "--json").json()
        assert [link["target"] for link in found if link["type"] == "MENTIONS"] == [old]
        assert "MENTIONS" in zettel("links", new, "--hops", "2").out

    def test_what_a_note_did_is_shown_and_taken_back(self, zettel: Zettel) -> None:
        ids = [zettel("add", "The ferry to Bergen leaves at nine.", "--id", str(n)).out.strip() for n in range(2)]
        assert zettel("evolve", "--json").json()["merged"] == 1
        told = zettel("history", ids[0]).out
        assert f"because of {ids[1]} “The ferry to Bergen leaves at nine.”" in told
        assert "based on" in told
        assert "+ merged_into: " + ids[0] in zettel("history", ids[1]).out
        changed = zettel("revert", "--effects-of", ids[1], "--json").json()
        assert {one["id"] for one in changed} == set(ids)
        assert not any(one["archived"] for one in changed)
        told = zettel("history", ids[0]).out
        assert all(part in told for part in ("reverts", "reverted"))
        assert "0 notes changed" in zettel("revert", "--effects-of", ids[1]).out

    def test_history_is_a_diff(self, zettel: Zettel) -> None:
        from zettel import Memory

        made = zettel("add", "The mast is oak.").out.strip()
        with Memory("zettel.db") as memory:
            memory.update(made, tags=["boat", "wood"], importance=0.75)
            memory.update(made, tags=["boat", "yard"], content="The mast is ash.")
            memory.revert(made, 1)
        told = zettel("history", made).out
        assert "importance: 0.5 → 0.75\n" in told
        assert "  - tags: wood\n  + tags: yard\n" in told
        assert "  - content: The mast is oak.\n  + content: The mast is ash.\n" in told
        assert "importance: 0.75 → 0.5\n" in told
        assert "\x1b" not in told
        assert [one["version"] for one in zettel("history", made, "--json").json()] == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        "wrong", [(), ("n_1",), ("n_1", "2", "--effects-of", "n_2"), ("n_1", "--effects-of", "n_2")]
    )
    def test_revert_says_what_it_takes(self, zettel: Zettel, wrong: tuple[str, ...]) -> None:
        zettel("add", "Snow fell.")
        ran = zettel("revert", *wrong)
        assert (ran.status, ran.out, ran.err.count("\n"), "--effects-of NOTE" in ran.err) == (1, "", 1, True)

    def test_delete_asks_first(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
        import io

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        made = zettel("add", "Snow fell.").out.strip()
        monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
        ran = zettel("delete", made)
        assert (ran.status, "nothing was deleted" in ran.err) == (1, True)
        assert zettel("show", made).status == 0
        assert zettel("delete", made, "--yes", "--json").json() == {"deleted": 1}
        assert zettel("show", made).status == 1

    @pytest.mark.parametrize("answer", ["", "y\n"])
    def test_delete_asks_nobody_but_people(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
        import io

        made = zettel("add", "Snow fell.").out.strip()
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        ran = zettel("delete", made)
        assert (ran.status, ran.out, ran.err.count("\n"), "--yes" in ran.err) == (1, "", 1, True)
        assert zettel("show", made).status == 0

    @pytest.mark.parametrize("chosen", [("--source", "chat.txt"), ("--session", "chat"), ("--scope",)])
    def test_delete_many(self, zettel: Zettel, chat: str, chosen: tuple[str, ...]) -> None:
        zettel("import", chat)
        zettel("add", "Of another scope.", "--user", "ben")
        assert zettel("delete", *chosen, "--yes", "--json").json() == {"deleted": 5}
        assert zettel("stats", "--json").json()["notes"] == 1

    def test_a_path_may_be_written_otherwise(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        other = zettel("delete", "--source", "elsewhere/chat.txt", "--yes")
        assert (other.status, other.out) == (1, "")
        assert "this scope has no notes of the source elsewhere/chat.txt" in other.err
        assert zettel("delete", "--source", "./chat.txt", "--yes").out == "5 notes deleted\n"

    def test_a_time_that_is_none(self, zettel: Zettel) -> None:
        ran = zettel("add", "x", "--at", "tomorrow")
        assert (ran.status, ran.err.count("\n")) == (1, 1)
        assert "occurred_at: 'tomorrow' is not a time: use ISO 8601 such as 2024-05-01T09:00Z" in ran.err


class TestUpkeep:
    def test_stats_jobs_worker_and_doctor(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat, "--user", "ann")
        stats = zettel("stats", "--json").json()
        assert (stats["notes"], stats["scopes"]) == (5, ["user='ann'"])
        assert "5" in zettel("stats", "--user", "ann").out
        assert zettel("worker", "--once").status == 0
        assert zettel("jobs", "--json").json() == []
        assert "all work is done" in zettel("jobs").out
        assert zettel("jobs", "retry", "--json").json() == {"queued": 0}
        assert zettel("doctor").out == "no problems found\n"
        assert zettel("doctor", "--repair", "--json").json() == {"found": [], "left": []}

    def test_stats_tell_what_made_it_and_how_big_it_is(self, zettel: Zettel, chat: str, tmp_path: Path) -> None:
        zettel("import", chat)
        stats = zettel("stats", "--json").json()
        assert stats["bytes"] >= (tmp_path / "zettel.db").stat().st_size > 0
        assert (stats["file"], stats["purges"], stats["annotator"]) == ("zettel.db", 0, "extractive")
        told = zettel("stats").out
        assert stats["embedder"] in told
        assert "size " in told
        assert "purge " not in told

    def test_stats_tell_of_a_purge_that_waits(self, zettel: Zettel, chat: str) -> None:
        import sqlite3

        zettel("import", chat)
        reader = sqlite3.connect("zettel.db")
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM notes").fetchone()
        try:
            zettel("delete", "--session", "chat", "--yes")
            assert zettel("stats", "--json").json()["purges"] == 1
            assert "purge " in zettel("stats").out
            assert "purge" in zettel("jobs").out
        finally:
            reader.close()

    @pytest.mark.parametrize("wrong", [("retri",), ("show",), ("cancel",), ("list", "j_1")])
    def test_what_cannot_be_done_with_jobs(self, zettel: Zettel, wrong: tuple[str, ...]) -> None:
        zettel("add", "Snow fell.")
        ran = zettel("jobs", *wrong)
        assert (ran.status, ran.err.count("\n"), wrong[0] in ran.err) == (2, 1, True)

    @pytest.mark.parametrize("action", ["show", "retry", "cancel"])
    def test_an_unknown_job_is_named(self, zettel: Zettel, action: str) -> None:
        zettel("add", "Snow fell.")
        ran = zettel("jobs", action, "j_nothing")
        assert (ran.status, ran.out, ran.err.count("\n"), "j_nothing" in ran.err) == (1, "", 1, True)
        assert "`zettel jobs`" in ran.err

    def test_one_job_is_shown_and_cancelled(self, zettel: Zettel) -> None:
        zettel("add", "The keel was laid in spring, and Ida painted it blue.", "--llm", "openai/nobody")
        (job,) = [one for one in zettel("jobs", "list", "--json").json() if one["kind"] == "annotate"]
        told = zettel("jobs", "show", job["id"]).out
        assert all(part in told for part in (job["id"], "annotate", "queued", job["note"], "the default scope"))
        assert zettel("jobs", "show", job["id"], "--json").json() == job
        assert zettel("jobs", "retry", job["id"]).out == f"{job['id']} has not failed\n"
        assert zettel("jobs", "cancel", job["id"], "--json").json() == {"cancelled": job["id"]}
        assert zettel("jobs").out == "no jobs: all work is done\n"

    def test_a_worker_has_scopes_evolve(self, zettel: Zettel) -> None:
        ids = [zettel("add", "The ferry to Bergen leaves at nine.", "--id", str(n)).out.strip() for n in range(2)]
        assert zettel("worker", "--once", "--every", "24h").out == "all jobs are done\n"
        assert zettel("show", ids[1], "--json").json()["merged_into"] == ids[0]

    @pytest.mark.parametrize("period", ["soon", "24", "0h", "-1h", "1.5h"])
    def test_a_period_that_is_none_is_named(self, zettel: Zettel, period: str) -> None:
        zettel("add", "Snow fell.")
        ran = zettel("worker", "--once", f"--every={period}")
        assert (ran.status, ran.err.count("\n"), repr(period) in ran.err) == (1, 1, True)

    def test_reembed(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        assert zettel("reembed", "--json").status == 0
        assert zettel("search", "piano", "--json").json()


class TestMistakes:
    """One line on stderr that names the thing, a status other than 0, no traceback, and no store left behind."""

    @pytest.mark.parametrize(
        ("arguments", "status", "told"),
        [
            (["search", "x"], 1, "no store zettel.db"),
            (["stats", "--store", "gone.db"], 1, "gone.db"),
            (["search", "--frobnicate", "x"], 2, "--frobnicate"),
            (["search"], 2, "QUESTION"),
            (["nosuch"], 2, "nosuch"),
            (["search", "x", "-k", "many"], 2, "-k"),
            (["import", "missing.json"], 1, "missing.json"),
            (["import", ".", "--format", "slack"], 1, ". contains no transcript of the format slack"),
            (["import", "prose.rst"], 1, ", plain, zettel"),
            (["import", "cut.json"], 1, "cut.json:1:"),
            (["import", "prose.md", "--format", "telex"], 1, "'telex'"),
            (["delete"], 1, "--session"),
            (["export", "--format", "csv"], 2, "jsonl"),
            (["bench", "2wiki", "missing"], 1, "missing"),
            (["bench", "locomo", "cut.json"], 1, "cut.json:1:"),
            (["stats", "--store", "prose.md"], 1, "prose.md"),
            (["search", "x", "--store", "prose.md"], 1, "prose.md is not a zettel store"),
            (["add", "x", "--store", "."], 1, "is a folder"),
            (["add", "x", "--store", "gone/a.db"], 1, "no folder"),
            (["demo", "--out", "."], 1, "is a folder"),
            (["demo", "--out", "gone/a.html"], 1, "the folder gone does not exist"),
        ],
    )
    def test_without_a_store(
        self, zettel: Zettel, tmp_path: Path, arguments: list[str], status: int, told: str
    ) -> None:
        for name in ("prose.md", "prose.rst"):
            (tmp_path / name).write_text("Just prose, of nobody.\n" * 200)
        (tmp_path / "cut.json").write_text('[{"sample_id": "pond", "conversation": {"session_1": [')
        before = {path.name for path in tmp_path.iterdir()}
        ran = zettel(*arguments)
        assert (ran.status, ran.out) == (status, "")
        assert told in ran.err
        assert ran.err.count("\n") == 1
        assert "Traceback" not in ran.err
        assert {path.name for path in tmp_path.iterdir()} - before <= {"zettel.db", "zettel.db-wal", "zettel.db-shm"}
        assert arguments[0] == "import" or {path.name for path in tmp_path.iterdir()} == before

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["search", ""], "question"),
            (["search", "   "], "question"),
            (["search", "x", "-k", "0"], "k=0"),
            (["search", "x", "-k", "-3"], "k=-3"),
            (["search", "x", "--as-of", "soon"], "soon"),
            (["links", "n_missing"], "n_missing"),
            (["export", "."], "is a folder"),
            (["export", "gone/a.jsonl"], "the folder gone does not exist"),
            (["search", "x", "--kind", "dream"], "dream"),
            (["search", "x", "--meta", "loose"], "NAME=VALUE"),
            (["search", "x", "--meta", "team=a", "--meta", "team=b"], "team already has a value"),
            (["add", "x", "--meta", "team=a", "--meta", "team=b"], "team already has a value"),
            (["import", "x", "--map-user", "Bob=Robert", "--map-user", "Bob=Rob"], "Bob already has a value"),
            (["context", "x", "--max-tokens", "0"], "max_tokens"),
            (["add", ""], "is empty"),
            (["add", "x", "--at", "soon"], "occurred_at"),
            (["show", "n_missing"], "n_missing"),
            (["history", "n_missing"], "n_missing"),
            (["revert", "n_missing", "1"], "n_missing"),
            (["delete", "n_missing", "--yes"], "n_missing"),
            (["search", "x", "--embedder", "./nowhere"], "nowhere"),
        ],
    )
    def test_with_a_store(self, zettel: Zettel, arguments: list[str], told: str) -> None:
        zettel("add", "Snow fell.")
        ran = zettel(*arguments)
        assert (ran.status, ran.out) == (1, "")
        assert told.casefold() in ran.err.casefold()
        assert ran.err.count("\n") == 1

    def test_a_folder_that_cannot_be_written(self, zettel: Zettel, tmp_path: Path) -> None:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o555)
        folder = Path("/proc") if os.access(closed, os.W_OK) else closed  # to root nothing of ours is closed
        ran = zettel("add", "Snow fell.", "--store", str(folder / "a.db"))
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert "a.db cannot be written" in ran.err

    def test_the_same_id_with_other_content(self, zettel: Zettel) -> None:
        zettel("add", "Snow fell.", "--id", "1")
        ran = zettel("add", "Rain fell.", "--id", "1")
        assert (ran.status, ran.err.count("\n")) == (1, 1)

    def test_a_reader_that_goes_away(self, tmp_path: Path) -> None:
        lines = [json.dumps({"content": f"Boat {n}.", "id": str(n)}) for n in range(2_000)]
        (tmp_path / "many.jsonl").write_text("\n".join(lines))
        importing = process("import", "many.jsonl", cwd=tmp_path)
        importing.communicate(timeout=110)
        assert importing.returncode == 0
        exporting = process("export", cwd=tmp_path)
        assert exporting.stdout is not None
        assert exporting.stderr is not None
        assert exporting.stdout.readline().startswith("{")
        exporting.stdout.close()
        assert exporting.stderr.read() == ""
        assert exporting.wait(timeout=60) != 0
        exporting.stderr.close()

    @pytest.mark.parametrize(("encoding", "speaker"), [("ascii", "\\xc5se"), ("latin-1", "Åse")])
    def test_a_pipe_that_is_not_utf_8(self, zettel: Zettel, tmp_path: Path, encoding: str, speaker: str) -> None:
        text = "Party – at noon 🎉"
        zettel("add", text, "--speaker", "Åse")
        env = os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}

        def said(*arguments: str) -> str:
            command = [sys.executable, "-c", MAIN, "search", "party", *arguments]
            ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True)
            return ran.stdout.decode(encoding)

        assert json.loads(said("--json"))[0]["note"]["content"] == text
        told = said()
        assert speaker in told
        assert "Party \\u2013 at noon \\U0001f389" in told
