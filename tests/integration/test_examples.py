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
        "fusion: Ida painted a boat shed red.\n",
        "fusion+phrases: The red boat was a birthday gift for Nils",
    ],
    "bitemporal_search.py": [
        "all we know:\n  2024-05-01  I live in Oslo now",
        "true in March:\n  2024-02-20  I live in Bergen, but no longer above the bakery.\n  2024-01-10  I live in",
        "known in between:\n  2024-01-10  I live in Bergen, above a bakery.\n",
    ],
}

HOSTED_MODEL = "with_a_model.py"
MODELS = {"OPENAI": "openai/gpt-4o-mini", "ANTHROPIC": "anthropic/claude-haiku-4-5", "OLLAMA": "ollama_chat/llama3.2"}
"""The models named in the example, by the prefix of their services' environment variables in LiteLLM."""
LOCAL_MODEL = "with_llama_cpp.py"
AGENT = "tools_in_a_loop.py"
WRAPPED = "wrap_a_client.py"
FROM_AMEM = "from_amem.py"
TIMEOUT = 250
"""Seconds: a real model is slow on a busy machine."""
LENIENT = "ignore::ResourceWarning"
"""LiteLLM leaves connections open until the interpreter exits."""
MODEL_OUTPUT = [
    "episodic, by the model: Ada remarks: The neck of my cello cracked tonight.",
    "episodic, without it: Bo, 1 March 2024: Great, thanks!",
    "Who repaired Ada's instrument?\n  ",
]


def test_every_example_is_tested() -> None:
    with_frameworks = {framework.example.name for framework in FRAMEWORKS}  # in tests/frameworks
    tested = {*EXPECTED, HOSTED_MODEL, LOCAL_MODEL, AGENT, WRAPPED, FROM_AMEM, *with_frameworks}
    assert {path.name for path in (CHECKOUT / "examples").glob("*.py")} == tested


def run(name: str, folder: Path, *arguments: str, warnings: str = "error", **settings: str) -> str:
    """Run an example in a folder with these environment variables and return its output.

    On stderr it may log failed jobs, as those of a model are; each test asserts what becomes of them.
    """
    process = subprocess.run(
        [sys.executable, "-W", warnings, str(CHECKOUT / "examples" / name), *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | settings,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    errors = [line for line in process.stderr.splitlines() if not line.startswith("a background job failed (annotate)")]
    assert (process.returncode, errors) == (0, []), process.stderr
    assert not list(folder.iterdir()), "an example leaves files behind"
    return process.stdout


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_the_expected_lines(name: str, tmp_path: Path) -> None:
    output = run(name, tmp_path)
    for expected in EXPECTED[name]:
        assert expected in output, output


@pytest.mark.parametrize("service", MODELS)
def test_the_model_example_works_with_each_service(service: str, tmp_path: Path) -> None:
    """The example calls each service in its own protocol; a rule-based model answers."""
    model = MODELS[service]
    assert model in (CHECKOUT / "examples" / HOSTED_MODEL).read_text()
    with ModelServer(reply) as openai, protocols(reply) as (address, _):
        settings = {f"{service}_API_BASE": openai.url if service == "OPENAI" else address, f"{service}_API_KEY": "none"}
        output = run(HOSTED_MODEL, tmp_path, model, warnings=LENIENT, **settings)
    for expected in [*MODEL_OUTPUT, f"{model} answered 2 times: "]:
        assert expected in output, output


def test_the_agent_example_stores_and_recalls(tmp_path: Path) -> None:
    with AgentServer() as server:
        output = run(AGENT, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
    assert output.splitlines() == [
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
    assert len(server.requests[0]["tools"]) == 11


def test_the_wrapped_client_example_recalls(tmp_path: Path) -> None:
    with TalkServer(lambda request: first_recalled(request).replace("I do not know", "Noted")) as server:
        output = run(WRAPPED, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
    assert output.splitlines() == [
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


def test_the_amem_example_annotates_and_links(tmp_path: Path) -> None:
    with ModelServer(reply) as server:
        output = run(FROM_AMEM, tmp_path, warnings=LENIENT, OPENAI_API_BASE=server.url, OPENAI_API_KEY="none")
    for expected in [
        "Ribs?\n  Maple ribs are bent by hand. \n  The iron is kept at two hundred degrees. (a link led there)\n",
        "  The iron is kept at a hundred and eighty degrees. It was read 1 time(s), and is linked to the ribs: True\n",
        "\n  memory content: Rosin is cooked from the resin of larches.\n",
    ]:
        assert expected in output, output
    assert "not annotated" not in output
    assert server.asked


def test_the_model_example_reports_a_missing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example loses no events and reports the missing key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    output = run(HOSTED_MODEL, tmp_path, warnings=LENIENT)
    assert "Some notes are not annotated: 3 jobs failed" in output
    assert "OPENAI_API_KEY" in output
    assert "episodic, without it: Ada, 1 March 2024: The neck of my cello cracked tonight" in output


@pytest.mark.timeout(2 * TIMEOUT + 50)
def test_the_local_model_example_annotates(small_model: str, tmp_path: Path) -> None:
    output = ""
    for _ in range(2):  # such a small model sometimes fails all three notes, also when it is called again
        output = run(LOCAL_MODEL, tmp_path, warnings=LENIENT, LLAMA_CPP_URL=small_model)
        if "episodic, by the model: " in output:
            break
    assert "episodic, by the model: " in output
    assert "episodic, without it: Bo, 1 March 2024: Great, thanks!" in output
    assert "\nWho repaired Ada's instrument?\n  " in output
    assert "openai/local answered " in output
