"""Contextual embedder without torch: a sentence transformer with 8-bit weights, run by onnxruntime.

``zettel.embed.export`` makes the files; ``minilm`` contains the default model, all-MiniLM-L6-v2.

A vector depends on its own text alone. Dynamic quantisation of ONNX models usually scales the activations of a whole
batch together, so that other texts change a vector (cosine 0.98 at worst). The exported graph scales each row of
activations by itself, and a batch contains only texts of equally many tokens, so that nothing is padded.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.embed.rows import unit_rows
from zettel.errors import EmbedderUnreadable
from zettel.ports import EmbedderInfo
from zettel.text.tokens import readable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from zettel.ports.query import Floats

SHIPPED = Path(__file__).parent / "minilm"
"""Folder of the shipped model."""

SHIPPED_NAME = "all-MiniLM-L6-v2-int8"
"""Name of the shipped model, also in the stores that use it."""

FORMAT = "zettel-onnx-embedder/1"
"""``format`` in the config.json of a readable folder."""

CONFIG, MODEL, TOKENIZER = "config.json", "model.onnx", "tokenizer.json"

MAX_CHARACTERS = 4_096
"""Characters of a text that count: 256 tokens have about 1,200."""

BATCH_TOKENS = 512
"""Tokens per run of the model. Short texts gain 20 % from a batch; activations of more tokens leave the cache."""

CALL_CHARACTERS = 65_536
"""Characters per call from the event loop, about a second on two cores: a cancelled job ends after the call."""

INLINE_TOKENS = 256
"""Tokens up to which one thread embeds the texts: a second thread would save less than 10 ms."""

MAX_THREADS = 16
"""Threads of one call. Each needs about 30 MB, and jobs of several processes share a large machine."""

NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""Environment variable without which onnxruntime 1.32 stores a device id, starts a thread and sends usage data, also on
Linux. Because of the thread, a forked process hangs when it ends."""

ERRORS_ONLY = 3
"""Severity from which onnxruntime logs."""


class _Model(NamedTuple):
    session: Any  # onnxruntime.InferenceSession, safe for concurrent runs
    tokenizer: Tokenizer


_loaded: dict[str, _Model] = {}
"""Loaded models of this process by fingerprint: all memories of a process share one."""

_loading = threading.Lock()


def is_onnx_model(folder: Path) -> bool:
    """True if the config.json of ``folder`` has this format."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


class OnnxEmbedder:
    """Embeds with the ONNX model in ``folder``, by default the shipped one.

    Reads config.json immediately; the first ``embed`` loads the model, which takes about 0.2 seconds.
    ``info.fingerprint`` is the sha256 of model.onnx and the number of tokens that count. Raises ``EmbedderUnreadable``
    for files that are missing, damaged or do not match each other, and without onnxruntime.
    """

    remote = False
    slow = True

    def __init__(self, folder: Path | str = SHIPPED) -> None:
        self._folder = Path(folder)
        config = _read_config(self._folder)
        try:
            self._hashes = {name: str(config["sha256"][name]) for name in (MODEL, TOKENIZER)}
            self._max_tokens = int(config["max_tokens"])
            self._info = EmbedderInfo(
                str(config["name"]), int(config["dim"]), fingerprint_of(self._hashes[MODEL], self._max_tokens)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EmbedderUnreadable(f"{self._folder} is damaged: {CONFIG} lacks {error}") from error
        missing = [name for name in self._hashes if not (self._folder / name).is_file()]
        if missing:
            raise EmbedderUnreadable(f"{self._folder} is damaged: {missing[0]} is missing")
        if find_spec("onnxruntime") is None:
            raise EmbedderUnreadable(_no_onnxruntime(self._info.name))

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension, and sha256 of the weights and the token limit."""
        return self._info

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; a text without tokens has a zero row.

        Only the first tokens of a text count, for the shipped model 256. A row does not depend on the other texts.
        """
        from anyio import to_thread

        parts = [await to_thread.run_sync(self.encode, part) for part in _calls(texts)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros((0, self._info.dim), np.float32), *parts])

    def encode(self, texts: Sequence[str]) -> Floats:
        """``embed`` in the calling thread and, for many texts, in further threads."""
        session, tokenizer = self._load()
        encodings = tokenizer.encode_batch_fast([readable(text[:MAX_CHARACTERS]) for text in texts])
        out = np.zeros((len(texts), self._info.dim), dtype=np.float32)
        tokens = [encoding.ids if 0 in encoding.special_tokens_mask else [] for encoding in encodings]
        batches = _batches(tokens)

        def run(places: Sequence[int]) -> None:
            ids = np.array([tokens[place] for place in places], dtype=np.int64)  # (b, t)
            (states,) = session.run(None, {"input_ids": ids})  # (b, t, dim)
            for place, rows in zip(places, states, strict=True):
                out[place] = rows.mean(axis=0)

        threads = min(usable_cores(), MAX_THREADS, len(batches))
        if threads < 2 or sum(map(len, tokens)) <= INLINE_TOKENS:
            for places in batches:
                run(places)
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="zettel-embed") as pool:
                list(pool.map(run, batches))  # raises the errors of the threads
        return unit_rows(out)

    def _load(self) -> _Model:
        key = self._info.fingerprint + self._hashes[TOKENIZER]
        with _loading:
            if key not in _loaded:
                _loaded[key] = self._read()
            return _loaded[key]

    def _read(self) -> _Model:
        from tokenizers import Tokenizer

        contents: dict[str, bytes] = {}
        for name, expected in self._hashes.items():
            try:
                contents[name] = (self._folder / name).read_bytes()
            except OSError as error:
                raise EmbedderUnreadable(f"{self._folder} is damaged: {name} is not readable: {error}") from error
            if hashlib.sha256(contents[name]).hexdigest() != expected:
                raise EmbedderUnreadable(f"{self._folder} is damaged: {name} does not match the hash in {CONFIG}")
        session = _session(contents[MODEL], self._folder, self._info.name)
        tokenizer = Tokenizer.from_buffer(contents[TOKENIZER])
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return _Model(session, tokenizer)


def _calls(texts: Sequence[str]) -> list[Sequence[str]]:
    """Split texts into consecutive parts of about ``CALL_CHARACTERS``."""
    parts: list[Sequence[str]] = []
    start = characters = 0
    for place, text in enumerate(texts):
        characters += min(len(text), MAX_CHARACTERS)
        if characters >= CALL_CHARACTERS:
            parts.append(texts[start : place + 1])
            start, characters = place + 1, 0
    return [*parts, texts[start:]] if start < len(texts) else parts


def fingerprint_of(model_hash: str, max_tokens: int) -> str:
    """The fingerprint of a model with this sha256, of whose texts this many tokens count."""
    return hashlib.sha256(f"{model_hash}\n{max_tokens}".encode()).hexdigest()


def usable_cores() -> int:
    """Cores on which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batches(tokens: Sequence[Sequence[int]]) -> list[list[int]]:
    """Places of the texts in batches of equally many tokens, the longest first; texts without tokens are left out."""
    by_length: dict[int, list[int]] = {}
    for place, ids in enumerate(tokens):
        if ids:
            by_length.setdefault(len(ids), []).append(place)
    batches = []
    for length, places in sorted(by_length.items(), reverse=True):
        size = max(1, BATCH_TOKENS // length)
        batches += [places[start : start + size] for start in range(0, len(places), size)]
    return batches


def _session(model: bytes, folder: Path, name: str) -> Any:
    """Return the session of a model.

    It has one thread, because ``encode`` runs batches in parallel: without threads that wait, results do not depend on
    the number of cores. The export has fused the operators already, and onnxruntime's own fusions are slower.
    """
    os.environ.setdefault(NO_TELEMETRY, "1")  # read when onnxruntime is imported
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as errors
    except ImportError as error:
        raise EmbedderUnreadable(_no_onnxruntime(name)) from error
    onnxruntime.disable_telemetry_events()  # if the application imported it earlier
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except (
        errors.Fail,
        errors.InvalidArgument,
        errors.InvalidGraph,
        errors.InvalidProtobuf,
        errors.NotImplemented,
        errors.RuntimeException,
    ) as error:  # they share no base
        reason = str(error).partition("\n")[0]
        raise EmbedderUnreadable(f"{folder} does not contain a model that onnxruntime can run: {reason}") from error


def _no_onnxruntime(name: str) -> str:
    return f'the embedder {name} needs onnxruntime: pip install onnxruntime, or use embedder="static"'


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError) as error:
        raise EmbedderUnreadable(f"{folder} does not contain an ONNX embedder: {error}") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise EmbedderUnreadable(f"{folder} does not contain an ONNX embedder: {CONFIG} lacks {FORMAT!r}")
    return config
