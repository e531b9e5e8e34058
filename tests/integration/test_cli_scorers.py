"""Scorers and efforts from the command line."""

from __future__ import annotations

import pytest

from tests.integration.command import Zettel
from tests.model_server import Fault, ModelServer, first
from zettel import scoring

pytestmark = pytest.mark.integration

QUESTION = "Where is the boat?"
LLM = ("--scorer", "llm", "--llm", "openai/gpt-4o-mini")


@pytest.fixture(autouse=True)
def _boats(zettel: Zettel) -> None:
    for name in ("red", "blue"):
        zettel("add", f"The {name} boat is moored in Oslo.")


def scorers(zettel: Zettel, *arguments: str) -> set[str]:
    return {hit["why"]["scorer"] for hit in zettel("search", QUESTION, *arguments, "--json").json()}


def test_by_name(zettel: Zettel, openai: ModelServer) -> None:
    assert scorers(zettel) == scorers(zettel, "--scorer", "fusion") == {"fusion"}
    assert scorers(zettel, *LLM) == {"fusion+llm"}
    assert "red boat" in zettel("context", QUESTION, *LLM).out
    assert openai.asked == 1  # both ask the same
    shown = zettel("search", QUESTION, "--explain", *LLM)
    assert (shown.err, "fusion+llm: local score" in shown.out) == ("", True)


def test_what_the_model_did_not_do_is_told_beside_the_hits(zettel: Zettel, openai: ModelServer) -> None:
    openai.plan = first([Fault.BROKEN])
    ran = zettel("search", QUESTION, *LLM)
    assert (ran.status, ran.out.count("boat")) == (0, 2)
    assert ran.err.startswith("zettel: ranked by fusion (not llm: openai/gpt-4o-mini did not answer")
    assert ran.err.count("\n") == 1
    ran = zettel("search", QUESTION, *LLM, "--budget", "calls=0")
    assert (ran.status, "the budget of the day is spent" in ran.err) == (0, True)


def test_by_effort(zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "EFFORTS", {"low": (), "mid": ("luck",)})
    assert scorers(zettel, "--effort", "low") == {"fusion"}
    assert zettel("context", QUESTION, "--effort", "low").status == 0
    ran = zettel("search", QUESTION, "--effort", "mid")
    assert (ran.status, "unknown scorer 'luck'" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--scorer", "luck"], "unknown scorer 'luck'"),
        (["--effort", "most"], "effort='most' must be one of low, mid, high"),
        (["--effort", "low", "--scorer", "fusion"], "effort= chooses a scorer"),
        (["--scorer", "llm"], "llm=..."),
        (["--scorer", "cross-encoder:./nowhere"], "nowhere"),
    ],
)
@pytest.mark.parametrize("command", ["search", "context"])
def test_mistakes(zettel: Zettel, command: str, arguments: list[str], told: str) -> None:
    ran = zettel(command, QUESTION, *arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert told in ran.err
