"""The command line with a language model behind HTTP: estimates, confirmation, waiting jobs and budgets."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.integration.command import Zettel
from tests.model_server import Fault, ModelServer, first

pytestmark = pytest.mark.integration

MODEL = "openai/gpt-4o-mini"
CHAT = """\
[2024-05-01 09:00] Ann: I moved to Oslo last week, the flat looks over the harbour.
[2024-05-01 09:01] Ben: Congratulations! Is the piano there already?
[2024-05-01 09:02] Ann: The piano comes on Friday with my brother Nils.
[2024-05-01 09:03] Ben: ok, thanks!
"""
ANNOTATED = 3
"""Turns of the chat that a model annotates: all but the last."""
TOLERANCE = 2.5
"""Largest ratio between an estimate and the actual use. Every message of the long chat states a fact, which is linked
too, and a busy machine sends requests before they are full: 34 of them instead of 19."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def chat(tmp_path: Path) -> str:
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    return "chat.txt"


@pytest.fixture
def long_chat(tmp_path: Path) -> str:
    """Write six sessions of generated messages as JSON lines."""
    things = "anchor piano kettle orchard lantern violin ladder compass saddle quilt".split()
    lines = []
    for n in range(180):
        session, thing, other = n // 30, things[n % 10], things[(7 * n + n // 10) % 10]
        content = (
            f"On day {n} the {thing} from harbour {session} stood beside a {other}, and I moved to town{n} for it."
        )
        lines.append(
            f'{{"id": "t{n}", "role": "{"Ann" if n % 2 else "Ben"}", "session": "s{session}",'
            f' "occurred_at": "2024-05-0{1 + session}T09:{n % 30:02}Z", "content": "{content}"}}'
        )
    (tmp_path / "long.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return "long.jsonl"


class TestImporting:
    def test_an_import_reports_its_estimate_and_annotates(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        result = zettel("import", chat, "--llm", MODEL, "--yes")
        assert result.status == 0, result.err
        estimate, *others = result.err.splitlines()
        assert estimate.startswith(f"about 2 calls to {MODEL}, about ")
        assert estimate.endswith("tokens, less than 0.01 USD")
        assert others == []
        assert "4  added" in result.out
        assert f"language model: {openai.asked} calls, " in result.out
        (hit,) = zettel("search", "noteworthy piano on Friday", "-k", "1", "--json").json()
        assert "noteworthy" in hit["note"]["keywords"]

    @pytest.mark.parametrize(("answer", "continues"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
    def test_an_import_asks_for_confirmation(
        self, zettel: Zettel, openai: ModelServer, chat: str, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch, answer: str, continues: bool,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        result = zettel("import", chat, "--llm", MODEL)
        assert "Continue? [y/N]" in result.err
        assert (result.status == 0) is continues
        assert (tmp_path / "zettel.db").exists() is continues
        assert (openai.asked > 0) is continues

    def test_without_a_terminal_nothing_is_stored(
        self, zettel: Zettel, openai: ModelServer, chat: str, tmp_path: Path
    ) -> None:
        result = zettel("import", chat, "--llm", MODEL, stdin=b"y\n")
        assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
        assert f"about 2 calls to {MODEL}" in result.err
        assert "--yes" in result.err
        assert not (tmp_path / "zettel.db").exists()
        zettel("add", "Snow fell.")
        assert zettel("import", chat, "--llm", MODEL, stdin=b"y\n").status == 1
        assert zettel("stats", "--json").json()["events"] == 1
        assert openai.asked == 0

    def test_a_repeated_import_makes_no_model_calls(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        assert zettel("import", chat, "--llm", MODEL, "--yes").status == 0
        calls = openai.asked
        repeated = zettel("import", chat, "--llm", MODEL)  # no confirmation, because no call is needed
        assert (repeated.status, repeated.err) == (0, "")
        assert "language model" not in repeated.out
        assert openai.asked == calls

    def test_an_unknown_price_is_reported(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        result = zettel("import", chat, "--llm", "openai/scribe", "--yes", "--json")
        assert "tokens, price not known\n" in result.err
        assert (result.json()["llm_calls"], result.json()["llm_usd"]) == (openai.asked, 0)

    def test_an_import_without_a_model_reports_no_model(self, zettel: Zettel, chat: str) -> None:
        result = zettel("import", chat)
        assert (result.status, result.err, "language model" in result.out) == (0, "", False)
        assert zettel("import", chat, "--json").json()["llm_calls"] == 0

    def test_the_estimate_is_close(self, zettel: Zettel, openai: ModelServer, long_chat: str) -> None:
        result = zettel("import", long_chat, "--llm", MODEL, "--yes", "--json")
        report = result.json()
        words = result.err.replace(",", "").split()
        calls, tokens = int(words[words.index("calls") - 1]), int(words[words.index("tokens") - 1])
        assert report["llm_calls"] == openai.asked
        assert 1 / TOLERANCE < calls / report["llm_calls"] < TOLERANCE
        assert 1 / TOLERANCE < tokens / report["llm_tokens"] < TOLERANCE
        assert 1 / TOLERANCE < float(words[words.index("USD") - 1]) / report["llm_usd"] < TOLERANCE

    def test_importing_a_whole_memory_calls_no_model(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        zettel("import", chat)
        zettel("add", "The cello stands in the hall.", "--llm", MODEL)
        zettel("export", "--format", "zettel", "all.zettel")
        result = zettel("import", "all.zettel", "--store", "new.db", "--llm", MODEL)
        assert (result.status, result.err) == (
            0,
            "zettel: 1 annotate job waits for a language model: pass --llm NAME\n",
        )
        assert openai.asked == 0


class TestBudget:
    def test_a_budget_limits_an_import_and_other_jobs_wait(
        self, zettel: Zettel, openai: ModelServer, long_chat: str
    ) -> None:
        budget = ("--llm", MODEL, "--budget", "calls=3,per=day")
        result = zettel("import", long_chat, *budget, "--yes")
        assert ", within the budget calls=3,per=day\n" in result.err
        assert result.status == 0, result.err
        assert "180  added" in result.out
        assert (
            "jobs wait, the first with the error: BudgetSpent: the budget of the day is spent: no calls left"
            in result.err
        )
        assert openai.asked == 3
        stats = zettel("stats", *budget).out
        assert f"language model  {MODEL}" in stats
        assert "model use       3 calls, " in stats
        assert "budget left     0 calls" in stats
        assert zettel("stats", *budget, "--json").json()["budget"] == {"calls": 0}
        assert zettel("worker", "--once", *budget).out.startswith(tuple("123456789"))
        assert openai.asked == 3

    @pytest.mark.parametrize(
        ("budget", "error_text"),
        [
            ("calls", "NAME=VALUE"),
            ("calls=many", "calls must be a number of at least 0, got 'many'"),
            ("euros=3", "unknown limit 'euros'"),
            ("per=day", "a budget needs a limit"),
            ("calls=3,per=week", "per must be day or import, got 'week'"),
        ],
    )
    def test_an_invalid_budget_is_an_error(
        self, zettel: Zettel, chat: str, tmp_path: Path, budget: str, error_text: str
    ) -> None:
        result = zettel("import", chat, "--llm", MODEL, "--budget", budget, "--yes")
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
        assert error_text in result.err
        assert not (tmp_path / "zettel.db").exists()

    def test_an_invalid_budget_is_an_error_without_model_calls(self, zettel: Zettel) -> None:
        zettel("add", "The door is green.")
        result = zettel("search", "door", "--budget", "a=1")
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
        assert "unknown limit 'a'" in result.err
        assert zettel("search", "door", "--budget", "usd=1").status == 0

    def test_a_budget_requires_a_model(self, zettel: Zettel, chat: str) -> None:
        result = zettel("import", chat, "--budget", "calls=3")
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert "--llm" in result.err


class TestJobs:
    def test_added_notes_wait_for_a_worker(self, zettel: Zettel, openai: ModelServer) -> None:
        note_id = zettel("add", "The cello stands in the hall.", "--llm", MODEL).out.strip()
        zettel("add", "Nils tunes it on Fridays.", "--llm", MODEL)
        assert openai.asked == 0
        waits = "2 annotate jobs wait for a language model: pass --llm NAME\n"
        assert zettel("jobs").err == f"zettel: {waits}"
        assert zettel("worker", "--once").out == waits
        assert "llm" not in zettel("stats").out
        result = zettel("worker", "--once", "--llm", MODEL)
        assert (result.status, result.out) == (0, "all jobs are done\n")
        assert openai.asked > 0
        assert "noteworthy" in zettel("show", note_id, "--json").json()["keywords"]
        assert zettel("jobs").out == "no jobs: all work is done\n"
        assert "model use" in zettel("stats").out

    def test_reading_commands_call_no_model(
        self, zettel: Zettel, openai: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ZETTEL_LLM", MODEL)
        monkeypatch.setenv("ZETTEL_BUDGET", "calls=10")
        note_id = zettel("add", "The cello stands in the hall.").out.strip()
        for command in (["search", "cello"], ["show", note_id], ["jobs"], ["stats"], ["context", "cello"], ["doctor"]):
            assert zettel(*command).status == 0
        assert openai.asked == 0
        assert "budget left     10 calls" in zettel("stats").out
        assert zettel("worker", "--once").status == 0
        assert openai.asked == 1

    def test_jobs_with_a_refused_key_can_be_retried(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        openai.plan = first([Fault.UNAUTHORIZED])
        result = zettel("import", chat, "--llm", MODEL, "--yes")
        assert (result.status, "4  added" in result.out) == (1, True)
        assert "OPENAI_API_KEY" in result.err
        assert "zettel jobs retry" in result.err
        assert zettel("jobs", "retry").out == f"{ANNOTATED} failed jobs are queued again\n"
        assert zettel("worker", "--once", "--llm", MODEL).out == "all jobs are done\n"
        assert all("noteworthy" in hit["note"]["keywords"] for hit in zettel("search", "piano", "--json").json()[:1])

    def test_a_failing_model_falls_back_to_the_next(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        openai.plan = first([Fault.BROKEN])
        result = zettel("import", chat, "--llm", f"{MODEL}, openai/scribe", "--yes", "--json")
        assert result.json()["llm_calls"] == openai.asked - 1
        assert {request["model"] for request in openai.requests} == {"gpt-4o-mini", "scribe"}
