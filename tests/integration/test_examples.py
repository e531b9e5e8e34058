"""Every example runs unchanged in an empty folder and prints the expected lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent_server import AgentServer
from tests.frameworks.known import FRAMEWORKS
from tests.model_protocols import protocols
from tests.model_server import ModelServer
from tests.scripted_model import reply
from tests.talk_server import TalkServer, first_recalled

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
EXPECTED = {
    "import_a_chat.py": [
        "A luthier in Cremona; her workshop smells of spruce.\n        because of: I brought it to Giulia Fontana",
        "- 18:02 Ada: I brought it to Giulia Fontana this morning.",
        "Nothing is left of the chat.",
    ],
    "own_scorer.py": [
        "fusion: Ida painted the boat house, and its door red.\n",
        "fusion+phrases: The red boat was a birthday gift for Nils",
    ],
    "bitemporal_search.py": [
        "all we know:\n  2024-05-01  I live in Oslo now",
        "true in March:\n  2024-02-20  I live in Bergen, but no longer above the bakery.\n  2024-01-10  I live in",
        "known in between:\n  2024-01-10  I live in Bergen, above a bakery.\n",
    ],
}

HOSTED = "with_a_model.py"
MODELS = {"OPENAI": "openai/gpt-4o-mini", "ANTHROPIC": "anthropic/claude-haiku-4-5", "OLLAMA": "ollama_chat/llama3.2"}
"""The models named in the example, by the prefix of their services' environment variables in LiteLLM."""
LOCAL = "with_llama_cpp.py"
AGENT = "tools_in_a_loop.py"
WRAPPED = "wrap_a_client.py"
FROM_AMEM = "from_amem.py"
TIMEOUT = 250
"""Seconds: a real model is slow on a busy machine."""
LENIENT = "ignore::ResourceWarning"
"""LiteLLM leaves connections open until the interpreter exits."""
ANSWERED = [
    "episodic, by the model: Ada remarks: The neck of my cello cracked tonight.",
    "episodic, without it: Bo, 1 March 2024: Great, thanks!",
    "Who repaired Ada's instrument?\n  ",
]


def test_every_example_is_tested() -> None:
    with_frameworks = {framework.example.name for framework in FRAMEWORKS}  # in tests/frameworks
    tested = {*EXPECTED, HOSTED, LOCAL, AGENT, WRAPPED, FROM_AMEM, *with_frameworks}
    assert {path.name for path in (CHECKOUT / "examples").glob("*.py")} == tested


def run(name: str, folder: Path, *arguments: str, warnings: str = "error", **settings: str) -> str:
    """Run an example in a folder with these environment variables and return its output."""
    done = subprocess.run(
        [sys.executable, "-W", warnings, str(CHECKOUT / "examples" / name), *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | settings,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert not list(folder.iterdir()), "an example leaves files behind"
    return done.stdout


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, tmp_path: Path) -> None:
    printed = run(name, tmp_path)
    for expected in EXPECTED[name]:
        assert expected in printed, printed


@pytest.mark.parametrize("service", MODELS)
def test_example_with_a_model(service: str, tmp_path: Path) -> None:
    """The example calls each service in its own protocol; a rule-based model answers."""
    model = MODELS[service]
    assert model in (CHECKOUT / "examples" / HOSTED).read_text()
    with ModelServer(reply) as openai, protocols(reply) as (url, _):
        settings = {f"{service}_API_BASE": openai.url if service == "OPENAI" else url, f"{service}_API_KEY": "none"}
        printed = run(HOSTED, tmp_path, model, warnings=LENIENT, **settings)
    for expected in [*ANSWERED, f"{model} answered 2 times: "]:
        assert expected in printed, printed


def test_example_of_an_agent(tmp_path: Path) -> None:
    with AgentServer() as server:
        printed = run(AGENT, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
    assert printed.splitlines() == [
        "Remember: Ann is allergic to walnuts.",
        '  add_memory {"text": "Ann is allergic to walnuts."}',
        "  Noted.",
        "Remember: Ann's boat is called Blue Heron.",
        '  add_memory {"text": "Ann\'s boat is called Blue Heron."}',
        "  Noted.",
        "What is Ann allergic to?",
        '  search_memories {"query": "What is Ann allergic to?", "limit": 3}',
        "  Ann is allergic to walnuts.",
    ]
    assert len(server.requests) == 6
    assert len(server.requests[0]["tools"]) == 7


def test_example_of_a_wrapped_client(tmp_path: Path) -> None:
    with TalkServer(lambda request: first_recalled(request).replace("I do not know", "Noted")) as server:
        printed = run(WRAPPED, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
    assert printed.splitlines() == [
        "Ann: I moved my boat, the Blue Heron, to the harbour of Risør.",
        "  Noted.",
        "Ann: I have sold my bicycle.",
        "  I moved my boat, the Blue Heron, to the harbour of Risør.",
        "Ann: Where is my boat?",
        "  I moved my boat, the Blue Heron, to the harbour of Risør.",
        "",
        "remembered:",
        "  Ann: I moved my boat, the Blue Heron, to the harbour of Risør.",
        "  assistant: Noted.",
        "  Ann: I have sold my bicycle.",
        "  Ann: Where is my boat?",
    ]


def test_example_from_amem(tmp_path: Path) -> None:
    with ModelServer(reply) as server:
        printed = run(FROM_AMEM, tmp_path, warnings=LENIENT, OPENAI_API_BASE=server.url, OPENAI_API_KEY="none")
    for expected in [
        "Ribs?\n  Maple ribs are bent by hand. \n  The iron is kept at two hundred degrees. (a link led there)\n",
        "  The iron is kept at a hundred and eighty degrees. It was read 1 time(s), and is linked to the ribs: True\n",
        "\n  memory content: Rosin is cooked from the resin of larches.\n",
    ]:
        assert expected in printed, printed
    assert "not annotated" not in printed
    assert server.asked


def test_example_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example loses no events and reports the missing key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    printed = run(HOSTED, tmp_path, warnings=LENIENT)
    assert "Some notes are not annotated: 3 jobs failed" in printed
    assert "OPENAI_API_KEY" in printed
    assert "episodic, without it: Ada, 1 March 2024: The neck of my cello cracked tonight" in printed


@pytest.mark.timeout(2 * TIMEOUT + 50)
def test_example_with_a_model_on_this_machine(small_model: str, tmp_path: Path) -> None:
    printed = ""
    for _ in range(2):  # such a small model sometimes fails all three notes, also when it is called again
        printed = run(LOCAL, tmp_path, warnings=LENIENT, LLAMA_CPP_URL=small_model)
        if "episodic, by the model: " in printed:
            break
    assert "episodic, by the model: " in printed
    assert "episodic, without it: Bo, 1 March 2024: Great, thanks!" in printed
    assert "\nWho repaired Ada's instrument?\n  " in printed
    assert "openai/local answered " in printed
