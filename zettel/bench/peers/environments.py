"""The peers, and an environment for each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from zettel.errors import InvalidInput, ZettelError
from zettel.version import VERSION

DRIVERS = Path(__file__).with_name("drivers")


class Peer(NamedTuple):
    """A system to measure: its row's name, its driver, and the packages of its environment, its own first.

    Without packages it runs in this environment. With ``events`` it gets the events' fields beside their texts.
    """

    name: str
    driver: Path
    packages: tuple[str, ...] = ()
    events: bool = False


ZETTEL = DRIVERS / "zettel_memory.py"
OURS = Peer("zettel", ZETTEL, events=True)
PEERS = {
    "zettel-texts": Peer("zettel, texts alone", ZETTEL),
    "chroma": Peer("Chroma", DRIVERS / "chroma.py", ("chromadb",)),
    "langgraph": Peer("LangGraph InMemoryStore", DRIVERS / "langgraph_store.py", ("langgraph", "numpy")),
    "mem0": Peer("mem0, infer=False", DRIVERS / "mem0_memory.py", ("mem0ai",)),
    "llama-index": Peer("LlamaIndex VectorMemory", DRIVERS / "llama_index_memory.py", ("llama-index-core",)),
    "txtai": Peer("txtai", DRIVERS / "txtai_index.py", ("txtai",)),
    "langmem": Peer("LangMem tools", DRIVERS / "langmem_tools.py", ("langmem", "numpy")),
    "graphiti": Peer("Graphiti search", DRIVERS / "graphiti_search.py", ("graphiti-core[kuzu]", "httpx")),
    "cognee": Peer("Cognee chunks", DRIVERS / "cognee_chunks.py", ("cognee",)),
}
"""Peers by their name on the command line."""
NOT_MEASURED = {
    "A-MEM": "every note needs a language model; the row A-MEM search ranks without one",
    "Letta": "letta 0.34 is a command-line agent: without a provider of a language model it answers no message",
}
"""Why a peer is not measured, by its row's name."""


class Environment(NamedTuple):
    """An interpreter, and the version of the peer that it imports."""

    python: Path
    version: str


def prepare(key: str, peer: Peer, folder: Path) -> Environment:
    """Return a peer's environment in ``folder``, and make it by uv if it is missing.

    Raises ``InvalidInput`` without uv, ``ZettelError`` if the peer cannot be installed; each in one line.
    """
    if not peer.packages:
        return Environment(Path(sys.executable), VERSION)
    place = (folder / key).absolute()
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
        if uv is None:
            raise InvalidInput("uv is missing, which makes the peers' environments: pip install uv")
        _run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place))
        _run(uv, "pip", "install", "--quiet", "--python", str(python), *peer.packages)
        (place / "complete").touch()
    ask = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    return Environment(python, _run(str(python), "-I", "-c", ask, peer.packages[0].partition("[")[0]))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["without a message"]
        raise ZettelError(f"{Path(command[0]).name} {command[1]} failed: {lines[-1].strip()}")
    return done.stdout.strip()
