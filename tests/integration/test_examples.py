"""Every example runs unchanged in an empty folder and prints the expected lines."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.agent_server import AgentServer
from tests.frameworks.known import FRAMEWORKS
from tests.model_protocols import protocols
from tests.model_server import ModelServer
from tests.pages import differences
from tests.scripted_model import reply
from tests.talk_server import TalkServer, first_recalled
from tests.waiting import until

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
EXAMPLES = CHECKOUT / "examples"
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
    "ten_lines.py": [
        "  I bought the Blue Heron!\n",
        "  A cutter built in 1931, moored in Risør. (by way of: I bought the Blue Heron!)\n",
    ],
    "support_bot.py": [
        "- 09:00 assistant: For 12 metres take the mainsail M-12.\n",
        "\n\n## Thursday, 2024-08-01\n- user: I moved to Oslo.\n\nCustomer: ",
        "\n\n## session ticket-3\n- user: My mast is 8 metres tall.\n\nCustomer: ",
    ],
    "team_memory.py": [
        "those of the team:\n  team: The release is on 4 June.\n  ann: I write the release notes.\n",
        "Ben does not see Ann's:\n  team: The release is on 4 June.\nA guest",
        "Waiting for review: ['The release is on 1 July.']",
    ],
    "erasure.py": [
        "3 notes deleted; left: ['The ferry leaves at seven.']\n",
        "imported again: ['deleted', 'existing', 'deleted']\n",
        "Ann's passport in the file: False\n",
    ],
    "obsidian.py": [
        "2 notes imported\nKiln log: Ostara took nine hours to reach its heat. The door leaks.\n",
        "'MENTIONS'",
        "1 note revised\n  1 add\n  2 link\n  3 edit\n",
    ],
    "feedback.py": [
        "used: ['The harbour office opens at eight.']\n",
        "searches: 2 with a report: 2\n",
    ],
    "evolution.py": [
        "before: clay, leaked, wire\nmerged: 1 ",
        "after: clay, leaked, wire, Ostara\n",
        "- Mira: Please always answer in metric units. (2025-03-20)",
        "by evolve; reverted: clay, leaked, wire\n",
    ],
    "filters.py": [
        "'sold': {'ne': True}} ['The Heron is a rowing boat.']\n",
        "['The Heron is a rowing boat.', 'The Tern is a cutter.']\n",
        "runs: 3 {'2024-05': 2, '2024-06': 1}\n",
    ],
    "entities.py": [
        "Ann ('Ann Berg',) 3\nAna ('my wife',) 1\n  home: Oslo (former)\n  home: Bergen",
        "('Ann Berg', 'Annie')\n('Ann Berg',)\n",
    ],
    "coding_agent.py": [
        "- Always run the tests with make check.\n",
        "call clear_lock (table: warehouse) (went well 2 of 2 times); not: call retry_job",
        "Task: The nightly export to the warehouse failed.\n- assistant: call clear_lock (table: warehouse)\n",
    ],
}

HOSTED_MODEL = "with_a_model.py"
MODELS = {"OPENAI": "openai/gpt-4o-mini", "ANTHROPIC": "anthropic/claude-haiku-4-5", "OLLAMA": "ollama_chat/llama3.2"}
"""The models named in the example, by the prefix of their services' environment variables in LiteLLM."""
LOCAL_MODEL = "with_llama_cpp.py"
AGENT = "tools_in_a_loop.py"
WRAPPED = "wrap_a_client.py"
FROM_AMEM = "from_amem.py"
CHAT_APP = "chat_app.py"
NOTEBOOK = "first_steps.ipynb"
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
    tested = {*EXPECTED, HOSTED_MODEL, LOCAL_MODEL, AGENT, WRAPPED, FROM_AMEM, CHAT_APP, *with_frameworks}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested
    assert [path.name for path in EXAMPLES.glob("*.ipynb")] == [NOTEBOOK]


def test_the_readme_lists_every_example_with_its_first_line() -> None:
    """The folder's page describes a program by the first line of its docstring."""
    page = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0].replace("``", "`")
        assert f"| [{path.name}]({path.name}) | {first} |" in page
    assert f"[{NOTEBOOK}]({NOTEBOOK})" in page


def run(name: str, folder: Path, *arguments: str, warnings: str = "error", **settings: str) -> str:
    """Run an example in a folder with these environment variables and return its output.

    On stderr it may warn about a model and log its failed jobs; each test asserts what becomes of them.
    """
    process = subprocess.run(
        [sys.executable, "-W", warnings, str(EXAMPLES / name), *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | settings,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    expected = ("a background job failed (annotate)", "the model ")
    errors = [line for line in process.stderr.splitlines() if not line.startswith(expected)]
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
    assert model in (EXAMPLES / HOSTED_MODEL).read_text()
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
    assert len(server.requests[0]["tools"]) == 12


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


# ------------------------------------------------------------------------------------------------------------ chat app


@contextlib.contextmanager
def chat_app(folder: Path, **settings: str) -> Iterator[httpx.Client]:
    """Run the app in a folder and yield a client of it; the app must end without an error."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(EXAMPLES / CHAT_APP), str(port)],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | settings,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:

            def answers() -> bool:
                assert process.poll() is None, process.communicate()[0]
                with contextlib.suppress(httpx.TransportError):
                    return client.get("/ready").status_code == 200
                return False

            until(answers)
            yield client
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", None)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def say(client: httpx.Client, user: str, text: str) -> str:
    answer = client.post("/chat", json={"user": user, "text": text})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["text"])


def test_the_chat_app_remembers_each_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with chat_app(tmp_path) as client:
        assert say(client, "ann", "I moved my boat to Risør.") == "Noted."
        assert say(client, "ann", "Where is my boat?") == "You wrote: I moved my boat to Risør."
        assert say(client, "ben", "Where is my boat?") == "Noted."
        assert "<form>" in client.get("/chat").text
        assert "<title>zettel" in client.get("/").text
        (hit, *_) = client.post("/v1/search?user=ann", json={"question": "Risør"}).json()["hits"]
        assert hit["note"]["content"] == "I moved my boat to Risør."
        assert client.get("/chat", headers={"host": "elsewhere.example"}).status_code == 400
    assert [path.name for path in tmp_path.iterdir()] == ["chat.db"]  # it closed the store


def test_the_chat_app_with_a_model(tmp_path: Path) -> None:
    with TalkServer() as model, chat_app(tmp_path, OPENAI_BASE_URL=model.url, OPENAI_API_KEY="none") as client:
        say(client, "ann", "I moved my boat to Risør.")
        assert say(client, "ann", "Where is my boat?") == "I moved my boat to Risør."
        assert "Risør" not in say(client, "ben", "Where is my boat?")


# ------------------------------------------------------------------------------------------------------------ notebook


def test_the_notebook_prints_the_stored_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code cells run in order in one namespace, without Jupyter, and print what the notebook shows."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / NOTEBOOK).read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    names: dict[str, object] = {}
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        assert cell["execution_count"] == number + 1
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile("".join(cell["source"]), f"{NOTEBOOK}, cell {number + 1}", "exec"), names)
        shown = "".join(line for stored in cell["outputs"] for line in stored["text"])
        assert differences(output.getvalue(), shown) == []
    assert number >= 5
    assert not list(tmp_path.iterdir()), "the notebook leaves files behind"
