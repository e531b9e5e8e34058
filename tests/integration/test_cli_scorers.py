"""The option ``--scorer`` of the command line."""

from __future__ import annotations

import pytest

from tests.integration.command import Zettel
from tests.model_server import Fault, ModelServer, first

pytestmark = pytest.mark.integration

QUESTION = "Where is the boat?"
LLM = ("--scorer", "llm", "--llm", "openai/gpt-4o-mini")


@pytest.fixture(autouse=True)
def _boats(zettel: Zettel) -> None:
    for name in ("red", "blue"):
        zettel("add", f"The {name} boat is moored in Oslo.")


def scorers(zettel: Zettel, *arguments: str) -> set[str]:
    return {hit["why"]["scorer"] for hit in zettel("search", QUESTION, *arguments, "--json").json()}


def test_a_scorer_is_selected_by_name(zettel: Zettel, openai: ModelServer) -> None:
    assert scorers(zettel) == scorers(zettel, "--scorer", "fusion") == {"fusion"}
    assert scorers(zettel, *LLM) == {"fusion+llm"}
    assert "red boat" in zettel("context", QUESTION, *LLM).out
    assert openai.asked == 1  # the second request is cached
    explained = zettel("search", QUESTION, "--explain", *LLM)
    assert (explained.err, "fusion+llm: local score" in explained.out) == ("", True)


def test_a_failing_model_is_reported_beside_the_hits(zettel: Zettel, openai: ModelServer) -> None:
    openai.plan = first([Fault.BROKEN])
    result = zettel("search", QUESTION, *LLM)
    assert (result.status, result.out.count("boat")) == (0, 2)
    assert result.err.startswith("zettel: ranked by fusion (not llm: openai/gpt-4o-mini did not answer")
    assert result.err.count("\n") == 1
    result = zettel("search", QUESTION, *LLM, "--budget", "calls=0")
    assert (result.status, "the budget of the day is spent" in result.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--scorer", "luck"], 2, "unknown scorer 'luck'"),
        (["--scorer", "llm"], 2, "llm=..."),
        (["--scorer", "cross-encoder:./nowhere"], 1, "nowhere"),
    ],
)
@pytest.mark.parametrize("command", ["search", "context"])
def test_invalid_scorers_are_one_line_errors(
    zettel: Zettel, command: str, arguments: list[str], status: int, message: str
) -> None:
    result = zettel(command, QUESTION, *arguments)
    assert (result.status, result.out, result.err.count("\n")) == (status, "", 1)
    assert message in result.err
