"""A search computes on one thread, whatever OpenBLAS may use: waiting threads took as much processor time again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

COSINES = (
    "from zettel.graph.columnar.vector_index import products\n"
    "vectors = numbers.standard_normal((10_000, 384), np.float32)\n"
    "work = lambda: products(vectors, vectors[0])\n"
)
SCORES = (
    "from zettel.scoring.networks import shipped_models\n"
    "from zettel.scoring.features import NOTE_NAMES\n"
    "models = shipped_models().local\n"
    "networks, count = models.stacked(len(models.names) - len(NOTE_NAMES)), len(NOTE_NAMES)\n"
    "notes = numbers.standard_normal((1_400, count), np.float32)\n"
    "question = numbers.standard_normal((1, len(models.names) - count), np.float32)\n"
    "work = lambda: networks.scores(notes, question, np.array([0, 1_400]))\n"
)
MEASURE = (
    "import time, numpy as np\n"
    "numbers = np.random.default_rng(5)\n"
    "{work}"
    "work()\n"
    "began, cpu = time.perf_counter(), time.process_time()\n"
    "for _ in range(100): work()\n"
    "print((time.process_time() - cpu) / (time.perf_counter() - began))\n"
)


@pytest.mark.parametrize("work", [COSINES, SCORES], ids=["cosines", "scores"])
def test_products_use_the_calling_thread_alone(work: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(work=work)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.3  # two threads, of which one waits busily, take 1.9
