"""The command line: every command, its text and JSON output, and one-line errors."""

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
from zettel.cli.search import EMPTY_CORE

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
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return command


def paths(group: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Return the path of every command, including its groups."""
    for name, command in command_at([*group]).commands.items():
        yield from paths((*group, name)) if hasattr(command, "commands") else [[*group, name]]


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_has_an_example(self, zettel: Zettel, command: str) -> None:
        result = zettel(command, "--help")
        assert result.status == 0
        assert "Example" in result.out
        assert f"zettel {command}" in result.out
        assert "--store" in result.out

    def test_without_a_command_help_lists_all_commands(self, zettel: Zettel) -> None:
        result = zettel()
        assert result.status == 0
        assert set(COMMANDS) <= set(result.out.split())
        assert "..." not in result.out.partition("Commands:")[2], "a first line is cut off"

    def test_version_is_shown(self, zettel: Zettel) -> None:
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
    def test_common_options_move_to_the_front(self) -> None:
        assert move_common_options_first(["search", "q", "--json", "--store", "a.db", "--user=ann"]) == [
            "--json", "--store", "a.db", "--user=ann", "search", "q",
        ]  # fmt: skip

    def test_arguments_after_two_dashes_stay(self) -> None:
        assert move_common_options_first(["add", "--", "--json"]) == ["add", "--", "--json"]

    def test_bench_has_its_own_json_option(self) -> None:
        assert move_common_options_first(["bench", "locomo", "x", "--json", "f"]) == [
            "bench",
            "locomo",
            "x",
            "--json",
            "f",
        ]

    @pytest.mark.parametrize("path", [*paths()], ids=" ".join)
    def test_json_is_accepted_after_every_command(self, path: list[str]) -> None:
        own = any(parameter.name == "json" for parameter in command_at(path).params)  # this option takes a file
        assert move_common_options_first([*path, "--json"]) == ([*path, "--json"] if own else ["--json", *path])

    def test_common_options_work_before_and_after_the_command(self, zettel: Zettel) -> None:
        note_id = zettel("add", "Snow fell.", "--store", "a.db", "--user", "ann", "--json").json()["id"]
        assert zettel("--store", "a.db", "--user", "ann", "--json", "show", note_id).json()["content"] == "Snow fell."

    def test_the_store_is_read_from_the_environment(
        self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("ZETTEL_STORE", "elsewhere.db")
        zettel("add", "Snow fell.")
        assert (tmp_path / "elsewhere.db").exists()

    def test_a_store_may_be_a_file_address(self, zettel: Zettel, tmp_path: Path) -> None:
        address = (tmp_path / "by address.db").as_uri()
        result = zettel("search", "x", "--store", address)
        assert (result.status, "there is no store" in result.err, list(tmp_path.iterdir())) == (1, True, [])
        zettel("add", "The door is green.", "--store", address)
        assert zettel("stats", "--store", address, "--json").json()["bytes"] > 0

    @pytest.mark.parametrize("part", ["--tenant", "--user", "--agent"])
    def test_an_empty_part_of_a_scope_is_refused(self, zettel: Zettel, tmp_path: Path, part: str) -> None:
        result = zettel("add", "Snow fell.", part, "")
        assert (result.status, result.out, list(tmp_path.iterdir())) == (2, "", [])
        assert f"{part}: the name is empty" in result.err

    def test_scopes_are_separate(self, zettel: Zettel) -> None:
        note_id = zettel("add", "Snow fell.", "--user", "ann").out.strip()
        result = zettel("show", note_id, "--user", "ben")
        assert (result.status, result.out) == (1, "")


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

    def test_deleted_events_are_not_imported_again(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        (first, *_) = zettel("search", "Who moved to Oslo?", "-k", "1", "--json").json()
        assert zettel("delete", first["note"]["id"], "--yes").status == 0
        report = zettel("import", chat, "--json").json()
        assert (report["added"], report["existing"], report["deleted"]) == (0, 4, 1)

    def test_the_table_shows_rejected_records(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"content": "Snow."}\n{"content": "cut o')
        result = zettel("import", "a.jsonl")
        assert (result.status, result.err.count("\n")) == (1, 1)
        assert "rejected 1 of 2 records, the others are stored; the first is a.jsonl:2: " in result.err
        assert "1  added" in result.out
        assert "1  rejected" in result.out
        assert "a.jsonl:2: " in result.out

    @pytest.mark.parametrize(
        ("third", "error_text"),
        [
            ({"content": "nul \x00 here"}, "NUL"),
            ({"content": "x" * 2_000_000}, "2,000,000 bytes"),
            ({"content": "x", "occurred_at": "2024-02-30"}, "occurred_at"),
        ],
    )
    def test_one_invalid_line_rejects_only_itself(
        self, zettel: Zettel, tmp_path: Path, third: dict[str, str], error_text: str
    ) -> None:
        lines = [{"id": str(n), "content": f"Boat {n} left."} | (third if n == 3 else {}) for n in range(1, 6)]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
        result = zettel("import", "a.jsonl", "--json")
        report = json.loads(result.out)
        assert (result.status, report["added"], len(report["rejected_records"])) == (1, 4, 1)
        assert (report["rejected_records"][0]["file"], report["rejected_records"][0]["position"]) == ("a.jsonl", "3")
        assert error_text in report["rejected_records"][0]["reason"]
        assert "a.jsonl:3: " in result.err
        assert zettel("stats", "--json").json()["notes"] == 4

    def test_a_file_without_events_is_an_error(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("")
        result = zettel("import", "a.jsonl", "--format", "jsonl")
        assert (result.status, "a.jsonl contains no events" in result.err) == (1, True)

    def test_one_conversation_can_be_imported(self, zettel: Zettel, tmp_path: Path) -> None:
        talks = [
            {"sample_id": name, "conversation": {"session_1": [{"speaker": "A", "text": name, "dia_id": "D1:1"}]}}
            for name in ("pond", "lake")
        ]
        (tmp_path / "both.json").write_text(json.dumps(talks))
        assert zettel("import", "both.json", "--conversation", "lake", "--json").json()["added"] == 1
        assert zettel("import", "both.json", "--json").json()["added"] == 1
        result = zettel("import", "both.json", "--conversation", "sea")
        assert (result.status, "'sea'" in result.err) == (2, True)

    def test_an_export_can_be_imported_again(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        assert zettel("export", "out.jsonl").err == "5 events written to out.jsonl\n"
        assert zettel("import", "out.jsonl", "--json").json()["existing"] == 5
        report = zettel("import", "out.jsonl", "--store", "copy.db", "--json").json()
        assert (report["added"], report["rejected_records"]) == (5, [])
        original, copy = zettel("export").out.splitlines(), zettel("export", "--store", "copy.db").out.splitlines()
        keys = ("content", "speaker", "occurred_at", "session")
        expected = [{key: json.loads(line)[key] for key in keys} for line in original]
        assert expected == [{key: json.loads(line)[key] for key in expected[0]} for line in copy]

    def test_ctrl_c_leaves_whole_batches(self, tmp_path: Path) -> None:
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
    def test_search_prints_a_table(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        result = zettel("search", "Where did Ann move?", "-k", "2")
        assert result.status == 0
        assert "Oslo" in result.out
        assert "2024-05-01" in result.out
        assert "sources" not in result.out

    def test_explain_prints_sources_features_and_scorer(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        result = zettel("search", "Where did Ann move?", "--explain")
        assert all(word in result.out for word in ("sources", "features", "scorer"))

    @pytest.mark.parametrize("columns", [80, 160])
    def test_output_fits_the_terminal_width(
        self, zettel: Zettel, chat: str, monkeypatch: pytest.MonkeyPatch, columns: int
    ) -> None:
        """A hit is a line with score, time, speaker and id, then the text over the full width, then the reasons."""
        monkeypatch.setenv("COLUMNS", str(columns))
        zettel("add", "It is forty feet long.", "--title", "Blue Heron", "--speaker", "Ann")
        note_id = zettel("add", "Blue Heron " + "was carried upstairs by four strong people " * 5).out.strip()
        zettel("import", chat)
        for arguments in (
            ["search", "piano", "--explain"],
            *([name, note_id] for name in ("links", "show", "history")),
        ):
            lines = zettel(*arguments).out.splitlines()
            assert max(map(len, lines)) <= columns
            assert lines == [line.rstrip() for line in lines]
        lines = zettel("search", "Who dropped it on the stairs?", "-k", "1").out.splitlines()
        assert re.fullmatch(r"[01]\.\d\d  2024-05-08 18:31  Ann  n_\w+", lines[0])
        assert lines[1] == "      Out of tune, Nils dropped it on the stairs."

    def test_search_prints_json(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        hits = zettel("search", "Who dropped the piano?", "--speaker", "Ann", "-k", "3", "--json").json()
        assert {hit["note"]["speaker"] for hit in hits} == {"Ann"}
        assert all(0 <= hit["score"] <= 1 for hit in hits)

    def test_dates_filter_hits(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        hits = zettel("search", "piano", "--since", "2024-05-02", "--json").json()
        assert {hit["note"]["occurred_at"][:10] for hit in hits} == {"2024-05-08"}

    def test_context_contains_the_answer(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        assert "Oslo" in zettel("context", "Where did Ann move?", "--max-tokens", "200").out

    def test_core_prints_pinned_notes_and_the_profile(self, zettel: Zettel) -> None:
        pinned = zettel("add", "The code of the gate is 4711.", "--speaker", "Ben").out.strip()
        for text in ("I live in Porto.", "Please always answer in metric units.", "Just quit the gym!"):
            zettel("add", text, "--speaker", "Mira")
        empty = zettel("core")
        assert (empty.status, empty.out) == (0, "")
        assert empty.err == f"zettel: {EMPTY_CORE}\n"
        assert zettel("core", "--json").json() == {"core": ""}
        assert zettel("edit", pinned, "--pin").status == 0
        assert zettel("evolve").status == 0
        text = zettel("core").out
        assert text.index("The code of the gate") < text.index("metric units") < text.index("I live in Porto.")
        assert zettel("core", "--json").json() == {"core": text.rstrip("\n")}
        short = zettel("core", "--max-tokens", "20").out
        assert "The code of the gate" in short
        assert "Porto" not in short

    def test_a_context_leaves_out_outdated_notes_as_in_python(self, zettel: Zettel) -> None:
        old = zettel("add", "The boat lies in Oslo.", "--speaker", "Ann").out.strip()
        new = zettel("add", "The boat lies in Bergen.", "--speaker", "Ann").out.strip()
        assert zettel("link", new, old, "--type", "SUPERSEDES").status == 0
        text = zettel("context", "Where does the boat lie?").out
        assert "Bergen" in text
        assert "Oslo" not in text
        assert "Oslo" in zettel("context", "Where did the boat lie before?").out


class TestNotes:
    def test_add_stores_every_field(self, zettel: Zettel) -> None:
        note_id = zettel(
            "add", "The mast is oak.", "--speaker", "Ann", "--at", "2024-05-01T09:00Z", "--title", "Mast",
            "--session", "yard", "--meta", "project=boat", "--meta", "length=7",
        ).out.strip()  # fmt: skip
        shown = zettel("show", note_id, "--json").json()
        assert (shown["speaker"], shown["title"], shown["session"]) == ("Ann", "Mast", "yard")
        assert shown["metadata"] == {"project": "boat", "length": 7}
        assert "The mast is oak." in zettel("show", note_id).out
        assert zettel("show", shown["event_ids"][0], "--json").json()["content"] == "The mast is oak."

    def test_add_reads_text_from_stdin(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
        import io

        monkeypatch.setattr(sys, "stdin", io.StringIO("From a pipe."))
        note_id = zettel("add", "-").out.strip()
        assert zettel("show", note_id, "--json").json()["content"] == "From a pipe."

    def test_stdin_in_another_encoding_is_an_error(self, tmp_path: Path) -> None:
        env = os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": "utf-8"}  # strict, as in most terminals
        command = [sys.executable, "-c", MAIN, "add", "-"]
        result = subprocess.run(command, cwd=tmp_path, env=env, input=b"caf\xe9", capture_output=True)
        assert (result.returncode, result.stdout, result.stderr.count(b"\n")) == (2, b"", 1)
        assert result.stderr.startswith(b"zettel: stdin is not utf-8 (byte 4,")
        assert list(tmp_path.iterdir()) == []

    def test_links_are_listed(self, zettel: Zettel) -> None:
        old = zettel("add", "It is forty feet long.", "--title", "Blue Heron").out.strip()
        new = zettel("add", "We painted Blue Heron today.").out.strip()
        links = zettel("links", new, "--json").json()
        assert [link["target"] for link in links if link["type"] == "MENTIONS"] == [old]
        assert "MENTIONS" in zettel("links", new, "--hops", "2").out

    def test_a_conflict_is_shown_resolved_and_opened_again(self, zettel: Zettel) -> None:
        rome = zettel("add", "Ben lives in Rome.", "--speaker", "Ben").out.strip()
        turin = zettel("add", "Ben lives in Turin.", "--speaker", "Cleo").out.strip()
        zettel("evolve")
        shown = zettel("conflicts").out
        for part in ("Ben's home: Rome / Turin", "Cleo  confidence 0.50", "Ben   confidence 0.50", rome, turin):
            assert part in shown
        link = zettel("resolve", rome, turin, "--reason", "I asked Ben", "--json").json()
        assert (link["source"], link["target"], link["reason"]) == (rome, turin, "I asked Ben")
        assert zettel("conflicts", "--json").json() == []
        assert "Turin" not in zettel("search", "Where does Ben live?", "--current").out
        assert "is removed" in zettel("unlink", rome, turin, "--type", "supersedes").out
        assert f"- SUPERSEDES {turin}" in zettel("history", rome).out
        assert len(zettel("conflicts", "--json").json()) == 1

    def test_the_effects_of_a_note_are_shown_and_reverted(self, zettel: Zettel) -> None:
        ids = [zettel("add", "The ferry to Bergen leaves at nine.", "--id", str(n)).out.strip() for n in range(2)]
        assert zettel("evolve", "--json").json()["merged"] == 1
        history = zettel("history", ids[0]).out
        assert f"because of {ids[1]} “The ferry to Bergen leaves at nine.”" in history
        assert "based on" in history
        assert "+ merged_into: " + ids[0] in zettel("history", ids[1]).out
        changed = zettel("revert", "--effects-of", ids[1], "--json").json()
        assert {note["id"] for note in changed} == set(ids)
        assert not any(note["archived"] for note in changed)
        history = zettel("history", ids[0]).out
        assert all(part in history for part in ("reverts", "reverted"))
        assert "0 notes changed" in zettel("revert", "--effects-of", ids[1]).out

    def test_history_is_a_diff(self, zettel: Zettel) -> None:
        from zettel import Memory

        note_id = zettel("add", "The mast is oak.").out.strip()
        with Memory("zettel.db") as memory:
            memory.update(note_id, tags=["boat", "wood"], importance=0.75)
            memory.update(note_id, tags=["boat", "yard"], content="The mast is ash.")
            memory.revert(note_id, 1)
        history = zettel("history", note_id).out
        assert "importance: 0.5 → 0.75\n" in history
        assert "  - tags: wood\n  + tags: yard\n" in history
        assert "  - content: The mast is oak.\n  + content: The mast is ash.\n" in history
        assert "importance: 0.75 → 0.5\n" in history
        assert "\x1b" not in history
        assert [revision["version"] for revision in zettel("history", note_id, "--json").json()] == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        "wrong", [(), ("n_1",), ("n_1", "2", "--effects-of", "n_2"), ("n_1", "--effects-of", "n_2")]
    )
    def test_wrong_arguments_of_revert_are_explained(self, zettel: Zettel, wrong: tuple[str, ...]) -> None:
        zettel("add", "Snow fell.")
        result = zettel("revert", *wrong)
        assert (result.status, result.out, result.err.count("\n"), "--effects-of NOTE" in result.err) == (
            2,
            "",
            1,
            True,
        )

    def test_delete_asks_first(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
        import io

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        note_id = zettel("add", "Snow fell.").out.strip()
        monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
        result = zettel("delete", note_id)
        assert (result.status, "nothing was deleted" in result.err) == (1, True)
        assert zettel("show", note_id).status == 0
        assert zettel("delete", note_id, "--yes", "--json").json() == {"deleted": 1}
        assert zettel("show", note_id).status == 1

    @pytest.mark.parametrize("answer", ["", "y\n"])
    def test_delete_without_a_terminal_requires_yes(
        self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch, answer: str
    ) -> None:
        import io

        note_id = zettel("add", "Snow fell.").out.strip()
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        result = zettel("delete", note_id)
        assert (result.status, result.out, result.err.count("\n"), "--yes" in result.err) == (1, "", 1, True)
        assert zettel("show", note_id).status == 0

    @pytest.mark.parametrize("chosen", [("--source", "chat.txt"), ("--session", "chat"), ("--scope",)])
    def test_delete_by_source_session_or_scope(self, zettel: Zettel, chat: str, chosen: tuple[str, ...]) -> None:
        zettel("import", chat)
        zettel("add", "Of another scope.", "--user", "ben")
        assert zettel("delete", *chosen, "--yes", "--json").json() == {"deleted": 5}
        assert zettel("stats", "--json").json()["notes"] == 1

    def test_delete_of_an_unknown_scope_is_an_error(self, zettel: Zettel) -> None:
        note_id = zettel("add", "Snow fell.", "--user", "ann").out.strip()
        for name, options in (("user='nobody'", ("--user", "nobody")), ("the default scope", ())):
            result = zettel("delete", "--scope", "--yes", *options)
            assert (result.status, result.out) == (1, "")
            assert result.err == f"zettel: no notes in {name}: see zettel scopes\n"
        assert zettel("delete", note_id, "--yes", "--user", "ann").status == 0
        left = zettel("delete", "--scope", "--yes", "--user", "ann")
        assert (left.status, left.out) == (0, "0 notes deleted\n"), "the tombstone was left"
        assert zettel("delete", "--scope", "--yes", "--user", "ann").status == 1

    @pytest.mark.parametrize(
        "command", [("search", "snow"), ("context", "snow"), ("core",), ("session", "s"), ("list",), ("export",)]
    )
    def test_a_scope_without_notes_is_named(self, zettel: Zettel, command: tuple[str, ...]) -> None:
        zettel("add", "Snow fell.", "--user", "ann")
        result = zettel(*command, "--user", "nobody")
        assert (result.status, result.out) == (0, "")
        assert result.err == "zettel: no notes in user='nobody': see zettel scopes\n"

    def test_a_context_without_hits_is_no_blank_line(self, zettel: Zettel) -> None:
        zettel("add", "Snow fell.")
        result = zettel("context", "snow", "--speaker", "Nobody")
        none = "zettel: no notes match: no note has the speaker 'Nobody'\n"
        assert (result.status, result.out, result.err) == (0, "", none)
        zettel("add", "It rained.", "--speaker", "Ann")
        for command in (("search", "rain"), ("context", "rain"), ("list",)):
            assert zettel(*command, "--speaker", "ann").err == none.replace("Nobody'", "ann'; speakers are Ann")
        assert zettel("list", "--speaker", "Ann", "--since", "2200-01-01").err == "zettel: no notes match\n"
        assert zettel("context", "snow", "--speaker", "Nobody", "--json").json() == {"context": ""}

    def test_delete_normalises_the_path_of_a_source(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        result = zettel("delete", "--source", "elsewhere/chat.txt", "--yes")
        assert (result.status, result.out) == (1, "")
        assert "'elsewhere/chat.txt' is not in the sources of the default scope" in result.err
        assert zettel("delete", "--source", "./chat.txt", "--yes").out == "5 notes deleted\n"

    def test_an_invalid_time_is_an_error(self, zettel: Zettel) -> None:
        result = zettel("add", "x", "--at", "tomorrow")
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert "occurred_at: 'tomorrow' is not a time: use ISO 8601 such as 2024-05-01T09:00Z" in result.err


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

    def test_stats_show_size_embedder_and_annotator(self, zettel: Zettel, chat: str, tmp_path: Path) -> None:
        zettel("import", chat)
        stats = zettel("stats", "--json").json()
        assert stats["bytes"] >= (tmp_path / "zettel.db").stat().st_size > 0
        assert (stats["file"], stats["purges"], stats["annotator"]) == ("zettel.db", 0, "extractive")
        table = zettel("stats").out
        assert stats["embedder"] in table
        assert "size " in table
        assert "purge " not in table

    def test_stats_show_a_pending_purge(self, zettel: Zettel, chat: str) -> None:
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
    def test_wrong_arguments_of_jobs_are_errors(self, zettel: Zettel, wrong: tuple[str, ...]) -> None:
        zettel("add", "Snow fell.")
        result = zettel("jobs", *wrong)
        assert (result.status, result.err.count("\n"), wrong[0] in result.err) == (2, 1, True)

    @pytest.mark.parametrize("action", ["show", "retry", "cancel"])
    def test_the_error_names_an_unknown_job(self, zettel: Zettel, action: str) -> None:
        zettel("add", "Snow fell.")
        result = zettel("jobs", action, "j_nothing")
        assert (result.status, result.out, result.err.count("\n"), "j_nothing" in result.err) == (1, "", 1, True)
        assert "`zettel jobs`" in result.err

    def test_a_job_can_be_shown_and_cancelled(self, zettel: Zettel) -> None:
        zettel("add", "The keel was laid in spring, and Ida painted it blue.", "--llm", "openai/nobody")
        (job,) = [job for job in zettel("jobs", "list", "--json").json() if job["kind"] == "annotate"]
        output = zettel("jobs", "show", job["id"]).out
        assert all(part in output for part in (job["id"], "annotate", "queued", job["note"], "the default scope"))
        assert zettel("jobs", "show", job["id"], "--json").json() == job
        assert zettel("jobs", "retry", job["id"]).out == f"{job['id']} has not failed\n"
        assert zettel("jobs", "cancel", job["id"], "--json").json() == {"cancelled": job["id"]}
        assert zettel("jobs").out == "no jobs: all work is done\n"

    def test_a_worker_evolves_scopes(self, zettel: Zettel) -> None:
        ids = [zettel("add", "The ferry to Bergen leaves at nine.", "--id", str(n)).out.strip() for n in range(2)]
        assert zettel("worker", "--once", "--every", "24h").out == "all jobs are done\n"
        assert zettel("show", ids[1], "--json").json()["merged_into"] == ids[0]

    @pytest.mark.parametrize("period", ["soon", "24", "0h", "-1h", "1.5h"])
    def test_the_error_names_an_invalid_period(self, zettel: Zettel, period: str) -> None:
        zettel("add", "Snow fell.")
        result = zettel("worker", "--once", f"--every={period}")
        assert (result.status, result.err.count("\n"), repr(period) in result.err) == (2, 1, True)

    def test_search_works_after_reembed(self, zettel: Zettel, chat: str) -> None:
        zettel("import", chat)
        assert zettel("reembed", "--json").status == 0
        assert zettel("search", "piano", "--json").json()


class TestMistakes:
    """One line on stderr that names the thing, a status other than 0, no traceback, and no store left behind."""

    @pytest.mark.parametrize(
        ("arguments", "status", "error_text"),
        [
            (["search", "x"], 1, "no store zettel.db"),
            (["stats", "--store", "missing.db"], 1, "missing.db"),
            (["search", "--frobnicate", "x"], 2, "--frobnicate"),
            (["search"], 2, "QUESTION"),
            (["nosuch"], 2, "nosuch"),
            (["search", "x", "-k", "many"], 2, "-k"),
            (["import", "missing.json"], 2, "missing.json"),
            (["import", ".", "--format", "slack"], 2, ". contains no transcript of the format slack"),
            (["import", "prose.rst"], 2, ", plain, zettel"),
            (["import", "cut.json"], 1, "cut.json:1:"),
            (["import", "prose.md", "--format", "telex"], 2, "'telex'"),
            (["delete"], 2, "--session"),
            (["export", "--format", "csv"], 2, "jsonl"),
            (["bench", "multihop", "missing"], 2, "missing"),
            (["bench", "locomo", "cut.json"], 1, "cut.json:1:"),
            (["stats", "--store", "prose.md"], 1, "prose.md"),
            (["search", "x", "--store", "prose.md"], 1, "prose.md is not a zettel store"),
            (["add", "x", "--store", "."], 1, "is a folder"),
            (["add", "x", "--store", "missing/a.db"], 1, "no folder"),
            (["demo", "--out", "."], 2, "is a folder"),
            (["demo", "--out", "missing/a.html"], 2, "the folder missing does not exist"),
        ],
    )
    def test_errors_without_a_store(
        self, zettel: Zettel, tmp_path: Path, arguments: list[str], status: int, error_text: str
    ) -> None:
        for name in ("prose.md", "prose.rst"):
            (tmp_path / name).write_text("Just prose, of nobody.\n" * 200)
        (tmp_path / "cut.json").write_text('[{"sample_id": "pond", "conversation": {"session_1": [')
        before = {path.name for path in tmp_path.iterdir()}
        result = zettel(*arguments)
        assert (result.status, result.out) == (status, "")
        assert error_text in result.err
        assert result.err.count("\n") == 1
        assert "Traceback" not in result.err
        assert {path.name for path in tmp_path.iterdir()} - before <= {"zettel.db", "zettel.db-wal", "zettel.db-shm"}
        assert arguments[0] == "import" or {path.name for path in tmp_path.iterdir()} == before

    @pytest.mark.parametrize(
        ("arguments", "status", "error_text"),
        [
            (["search", ""], 2, "question"),
            (["search", "   "], 2, "question"),
            (["search", "x", "-k", "0"], 2, "k=0"),
            (["search", "x", "-k", "-3"], 2, "k=-3"),
            (["search", "x", "--as-of", "soon"], 2, "soon"),
            (["links", "n_missing"], 1, "n_missing"),
            (["export", "."], 2, "is a folder"),
            (["export", "missing/a.jsonl"], 2, "the folder missing does not exist"),
            (["search", "x", "--kind", "dream"], 2, "dream"),
            (["search", "x", "--meta", "loose"], 2, "NAME=VALUE"),
            (["search", "x", "--meta", "team=a", "--meta", "team=b"], 2, "team already has a value"),
            (["add", "x", "--meta", "team=a", "--meta", "team=b"], 2, "team already has a value"),
            (["import", "x", "--map-user", "Bob=Robert", "--map-user", "Bob=Rob"], 2, "Bob already has a value"),
            (["context", "x", "--max-tokens", "0"], 2, "max_tokens"),
            (["add", ""], 2, "is empty"),
            (["add", "x", "--at", "soon"], 2, "occurred_at"),
            (["search", "x", "--usr", "ann"], 2, "--user"),
            (["show", "n_missing"], 1, "n_missing"),
            (["history", "n_missing"], 1, "n_missing"),
            (["revert", "n_missing", "1"], 1, "n_missing"),
            (["delete", "n_missing", "--yes"], 1, "n_missing"),
            (["search", "x", "--embedder", "./nowhere"], 1, "nowhere"),
        ],
    )
    def test_errors_with_a_store(self, zettel: Zettel, arguments: list[str], status: int, error_text: str) -> None:
        zettel("add", "Snow fell.")
        result = zettel(*arguments)
        assert (result.status, result.out) == (status, "")
        assert error_text.casefold() in result.err.casefold()
        assert result.err.count("\n") == 1

    def test_a_read_only_folder_is_an_error(self, zettel: Zettel, tmp_path: Path) -> None:
        read_only = tmp_path / "closed"
        read_only.mkdir(mode=0o555)
        folder = Path("/proc") if os.access(read_only, os.W_OK) else read_only  # root can write to any folder of ours
        result = zettel("add", "Snow fell.", "--store", str(folder / "a.db"))
        assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
        assert "a.db cannot be written" in result.err

    def test_a_known_id_with_other_content_is_an_error(self, zettel: Zettel) -> None:
        zettel("add", "Snow fell.", "--id", "1")
        result = zettel("add", "Rain fell.", "--id", "1")
        assert (result.status, result.err.count("\n"), "--on-conflict" in result.err) == (1, 1, True)
        assert zettel("add", "Rain fell.", "--id", "1", "--on-conflict", "revise").status == 0

    def test_an_unknown_format_suggests_the_name(self, zettel: Zettel, chat: str) -> None:
        for name, suggested in (("obsidian", "markdown"), ("whatsap", "whatsapp")):
            result = zettel("import", chat, "--format", name)
            assert (result.status, f"did you mean {suggested}?" in result.err) == (2, True), result.err

    @pytest.mark.parametrize(
        ("command", "hint"),
        [
            (("search", "boat", "--limit", "3"), "No such option: --limit (Possible options: -k)"),
            (("search", "boat", "--sesion", "a"), "No such option: --sesion (Possible options: --session)"),
            (("delete", "--speaker", "Ann"), "No such option: --speaker (see zettel delete --help)"),
        ],
    )
    def test_an_unknown_option_gets_a_close_one(self, zettel: Zettel, command: tuple[str, ...], hint: str) -> None:
        failed = zettel(*command)
        assert failed.status == 2
        assert hint in failed.err

    def test_an_id_of_another_scope_names_its_options(self, zettel: Zettel) -> None:
        of_ann = zettel("add", "Snow fell.", "--user", "ann b").out.strip()
        of_nobody = zettel("add", "Rain fell.").out.strip()
        for command in (["show"], ["links"], ["delete", "--yes"]):
            result = zettel(*command, of_ann)
            assert (result.status, result.err.count("\n")) == (1, 1)
            assert "it is in user='ann b'; pass --user 'ann b'" in result.err
        assert "it is in the default scope; leave out" in zettel("show", of_nobody, "--user", "ann b").err
        assert "run a search" in zettel("show", "n_0", "--user", "ann b").err

    def test_a_list_has_one_line_per_note(self, zettel: Zettel) -> None:
        zettel("add", "Snow fell.\n\nThen it melted.")
        for command in ("list", "query"):
            assert "Snow fell. Then it melted." in zettel(command).out

    def test_export_ends_when_its_reader_closes(self, tmp_path: Path) -> None:
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
    def test_output_is_encoded_for_the_pipe(self, zettel: Zettel, tmp_path: Path, encoding: str, speaker: str) -> None:
        text = "Party – at noon 🎉"
        zettel("add", text, "--speaker", "Åse")
        env = os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}

        def search_output(*arguments: str) -> str:
            command = [sys.executable, "-c", MAIN, "search", "party", *arguments]
            result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True)
            return result.stdout.decode(encoding)

        assert json.loads(search_output("--json"))[0]["note"]["content"] == text
        table = search_output()
        assert speaker in table
        assert "Party \\u2013 at noon \\U0001f389" in table
