"""The command line with a language model behind HTTP: what an import says and asks beforehand, what waits, what was
spent."""

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
TURNS = 3
"""Those of the chat that a model reads: all but the last."""
CLOSE = 1.5
"""Between an estimate and what was really used."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def chat(tmp_path: Path) -> str:
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    return "chat.txt"


@pytest.fixture
def long_chat(tmp_path: Path) -> str:
    """Six sessions of invented talk, as JSON lines."""
    things = "anchor piano kettle orchard lantern violin ladder compass saddle quilt".split()
    lines = []
    for n in range(180):
        session, thing, other = n // 30, things[n % 10], things[(7 * n + n // 10) % 10]
        said = f"On day {n} the {thing} from harbour {session} stood beside a {other}, and I moved to town{n} for it."
        lines.append(
            f'{{"id": "t{n}", "role": "{"Ann" if n % 2 else "Ben"}", "session": "s{session}",'
            f' "occurred_at": "2024-05-0{1 + session}T09:{n % 30:02}Z", "content": "{said}"}}'
        )
    (tmp_path / "long.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return "long.jsonl"


class TestImporting:
    def test_it_says_what_it_will_cost_and_does_it(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        ran = zettel("import", chat, "--llm", MODEL, "--yes")
        assert ran.status == 0, ran.err
        said, *rest = ran.err.splitlines()
        assert said.startswith(f"about 2 calls to {MODEL}, about ")
        assert said.endswith("tokens, less than 0.01 USD")
        assert rest == []
        assert "4  added" in ran.out
        assert f"language model: {openai.asked} calls, " in ran.out
        (hit,) = zettel("search", "noteworthy piano on Friday", "-k", "1", "--json").json()
        assert "noteworthy" in hit["note"]["keywords"]

    @pytest.mark.parametrize(("answer", "goes_on"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
    def test_it_asks_people(
        self, zettel: Zettel, openai: ModelServer, chat: str, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch, answer: str, goes_on: bool,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        ran = zettel("import", chat, "--llm", MODEL)
        assert "Continue? [y/N]" in ran.err
        assert (ran.status == 0) is goes_on
        assert (tmp_path / "zettel.db").exists() is goes_on
        assert (openai.asked > 0) is goes_on

    def test_without_a_terminal_nothing_is_stored(
        self, zettel: Zettel, openai: ModelServer, chat: str, tmp_path: Path
    ) -> None:
        ran = zettel("import", chat, "--llm", MODEL, stdin=b"y\n")
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert f"about 2 calls to {MODEL}" in ran.err
        assert "--yes" in ran.err
        assert not (tmp_path / "zettel.db").exists()
        zettel("add", "Snow fell.")
        assert zettel("import", chat, "--llm", MODEL, stdin=b"y\n").status == 1
        assert zettel("stats", "--json").json()["events"] == 1
        assert openai.asked == 0

    def test_what_is_known_costs_nothing_again(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        assert zettel("import", chat, "--llm", MODEL, "--yes").status == 0
        asked = openai.asked
        again = zettel("import", chat, "--llm", MODEL)  # nobody is asked: there is nothing to ask about
        assert (again.status, again.err) == (0, "")
        assert "language model" not in again.out
        assert openai.asked == asked

    def test_a_model_without_a_price(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        ran = zettel("import", chat, "--llm", "openai/scribe", "--yes", "--json")
        assert "tokens, price not known\n" in ran.err
        assert (ran.json()["llm_calls"], ran.json()["llm_usd"]) == (openai.asked, 0)

    def test_without_a_model_nothing_is_said_of_one(self, zettel: Zettel, chat: str) -> None:
        ran = zettel("import", chat)
        assert (ran.status, ran.err, "language model" in ran.out) == (0, "", False)
        assert zettel("import", chat, "--json").json()["llm_calls"] == 0

    def test_the_estimate_is_close(self, zettel: Zettel, openai: ModelServer, long_chat: str) -> None:
        ran = zettel("import", long_chat, "--llm", MODEL, "--yes", "--json")
        report = ran.json()
        words = ran.err.replace(",", "").split()
        calls, tokens = int(words[words.index("calls") - 1]), int(words[words.index("tokens") - 1])
        assert report["llm_calls"] == openai.asked
        assert 1 / CLOSE < calls / report["llm_calls"] < CLOSE
        assert 1 / CLOSE < tokens / report["llm_tokens"] < CLOSE
        assert 1 / CLOSE < float(words[words.index("USD") - 1]) / report["llm_usd"] < CLOSE

    def test_a_whole_memory_asks_no_model(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        zettel("import", chat)
        zettel("add", "The cello stands in the hall.", "--llm", MODEL)
        zettel("export", "--format", "zettel", "all.zettel")
        ran = zettel("import", "all.zettel", "--store", "new.db", "--llm", MODEL)
        assert (ran.status, ran.err) == (0, "zettel: 1 annotate job waits for a language model: pass --llm NAME\n")
        assert openai.asked == 0


class TestBudget:
    def test_it_bounds_an_import_and_the_rest_waits(self, zettel: Zettel, openai: ModelServer, long_chat: str) -> None:
        budget = ("--llm", MODEL, "--budget", "calls=3,per=day")
        ran = zettel("import", long_chat, *budget, "--yes")
        assert ", within the budget calls=3,per=day\n" in ran.err
        assert ran.status == 0, ran.err
        assert "180  added" in ran.out
        assert (
            "jobs wait, the first with the error: BudgetSpent: the budget of the day is spent: no calls left" in ran.err
        )
        assert openai.asked == 3
        told = zettel("stats", *budget).out
        assert f"language model  {MODEL}" in told
        assert "model use       3 calls, " in told
        assert "budget left     0 calls" in told
        assert zettel("stats", *budget, "--json").json()["budget"] == {"calls": 0}
        assert zettel("worker", "--once", *budget).out.startswith(tuple("123456789"))
        assert openai.asked == 3

    @pytest.mark.parametrize(
        ("budget", "told"),
        [
            ("calls", "NAME=VALUE"),
            ("calls=many", "calls must be a number of at least 0, got 'many'"),
            ("euros=3", "unknown limit 'euros'"),
            ("per=day", "a budget needs a limit"),
            ("calls=3,per=week", "per must be day or import, got 'week'"),
        ],
    )
    def test_what_is_no_budget(self, zettel: Zettel, chat: str, tmp_path: Path, budget: str, told: str) -> None:
        ran = zettel("import", chat, "--llm", MODEL, "--budget", budget, "--yes")
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert told in ran.err
        assert not (tmp_path / "zettel.db").exists()

    def test_what_is_no_budget_is_told_by_a_command_that_asks_no_model(self, zettel: Zettel) -> None:
        zettel("add", "The door is green.")
        ran = zettel("search", "door", "--budget", "a=1")
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert "unknown limit 'a'" in ran.err
        assert zettel("search", "door", "--budget", "usd=1").status == 0

    def test_without_a_model_it_bounds_nothing(self, zettel: Zettel, chat: str) -> None:
        ran = zettel("import", chat, "--budget", "calls=3")
        assert (ran.status, ran.err.count("\n")) == (1, 1)
        assert "--llm" in ran.err


class TestJobs:
    def test_what_is_added_waits_for_a_worker(self, zettel: Zettel, openai: ModelServer) -> None:
        made = zettel("add", "The cello stands in the hall.", "--llm", MODEL).out.strip()
        zettel("add", "Nils tunes it on Fridays.", "--llm", MODEL)
        assert openai.asked == 0
        waits = "2 annotate jobs wait for a language model: pass --llm NAME\n"
        assert zettel("jobs").err == f"zettel: {waits}"
        assert zettel("worker", "--once").out == waits
        assert "llm" not in zettel("stats").out
        ran = zettel("worker", "--once", "--llm", MODEL)
        assert (ran.status, ran.out) == (0, "all jobs are done\n")
        assert openai.asked > 0
        assert "noteworthy" in zettel("show", made, "--json").json()["keywords"]
        assert zettel("jobs").out == "no jobs: all work is done\n"
        assert "model use" in zettel("stats").out

    def test_looking_asks_no_model(self, zettel: Zettel, openai: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ZETTEL_LLM", MODEL)
        monkeypatch.setenv("ZETTEL_BUDGET", "calls=10")
        made = zettel("add", "The cello stands in the hall.").out.strip()
        for command in (["search", "cello"], ["show", made], ["jobs"], ["stats"], ["context", "cello"], ["doctor"]):
            assert zettel(*command).status == 0
        assert openai.asked == 0
        assert "budget left     10 calls" in zettel("stats").out
        assert zettel("worker", "--once").status == 0
        assert openai.asked == 1

    def test_a_refused_key_is_told_and_tried_again_by_one_command(
        self, zettel: Zettel, openai: ModelServer, chat: str
    ) -> None:
        openai.plan = first([Fault.UNAUTHORIZED])
        ran = zettel("import", chat, "--llm", MODEL, "--yes")
        assert (ran.status, "4  added" in ran.out) == (1, True)
        assert "OPENAI_API_KEY" in ran.err
        assert "zettel jobs retry" in ran.err
        assert zettel("jobs", "retry").out == f"{TURNS} failed jobs are queued again\n"
        assert zettel("worker", "--once", "--llm", MODEL).out == "all jobs are done\n"
        assert all("noteworthy" in hit["note"]["keywords"] for hit in zettel("search", "piano", "--json").json()[:1])

    def test_several_models_stand_in_for_each_other(self, zettel: Zettel, openai: ModelServer, chat: str) -> None:
        openai.plan = first([Fault.BROKEN])
        ran = zettel("import", chat, "--llm", f"{MODEL}, openai/scribe", "--yes", "--json")
        assert ran.json()["llm_calls"] == openai.asked - 1
        assert {request["model"] for request in openai.requests} == {"gpt-4o-mini", "scribe"}
