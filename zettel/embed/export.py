"""Exports a sentence transformer to an ONNX embedder. ``export_onnx`` made the shipped model.

The graph is written operator by operator from the weights, so torch is not involved. Weights are rounded to 8 bits
with one scale per output (of a token's row: one per row). Each row of activations is rounded to 8 bits with a scale of
its own, its largest value (per-token dynamic quantisation; Yao et al., ZeroQuant, 2022). Integer sums are exact, so
every processor gives the same products.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.embed.distill import licence_of
from zettel.embed.onnx import CONFIG, FORMAT, MODEL, TOKENIZER, OnnxEmbedder, is_onnx_model
from zettel.embed.transformer import find_model, fingerprint_of, public_name
from zettel.errors import EmbedderUnreadable, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from zettel.ports.query import Floats

OPSET, IR_VERSION, CONTRIB_OPSET = 17, 8, 1
"""Versions of ONNX that onnxruntime 1.19, the lower bound, reads."""

CONTRIB = "com.microsoft"
"""Domain of the fused operators of onnxruntime."""

INT8_MAX = 127

PAIR_MAX = 128
"""Largest sum of two weights in a column: older processors (AVX2) add 2 products in 16 bits, and 255 * 128 < 2**15."""

UINT8_MAX, MIDDLE = 255, 128

GELU_ZERO = 16
"""uint8 that represents 0 after GELU, whose values begin at -0.17: it leaves 239 steps above instead of 127."""

GELU_LOWEST = 0.17
"""Negated minimum of GELU, rounded up."""

SHAPE = "model_type", "hidden_act", "position_embedding_type"
SUPPORTED = ("bert", "gelu", "absolute")
"""The architecture that the graph implements."""


def export_onnx(
    model: str | Path, folder: str | Path, *, max_tokens: int | None = None, name: str | None = None
) -> OnnxEmbedder:
    """Export a sentence transformer into ``folder``, and return the ONNX embedder.

    ``model``: name or folder of a BERT with mean pooling and without prompts. ``max_tokens``: tokens of a text that
    count, by default the model's setting. ``name``: by default the model's name and ``int8``. Equal versions of ONNX
    write equal bytes.

    Raises ``MissingExtra`` without the packages of ``[torch]``, ``InvalidInput`` for other data in ``folder``, invalid
    ``max_tokens`` or another architecture, and the errors of finding a model.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("exporting an embedder", "torch") from error
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder, source = Path(folder), find_model(model)
    if folder.exists() and not is_onnx_model(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} contains other data: name a new folder for the embedder")
    settings = _settings(source)
    limit = int(settings["max_position_embeddings"])
    tokens = max_tokens or min(limit, int(_read(source, "sentence_bert_config.json").get("max_seq_length") or limit))
    if not 3 <= tokens <= limit:
        raise InvalidInput(f"max_tokens must be between 3 and {limit}, the limit of {model}; got {tokens}")
    try:
        weights = load_file(source / "model.safetensors")
        tokenizer = Tokenizer.from_file(str(source / TOKENIZER))
        graph = _Graph(weights, settings, tokens).build()
    except (OSError, KeyError, TypeError) as error:
        raise EmbedderUnreadable(f"{source} does not contain a transformer that can be exported: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    label = public_name(model)
    files = {MODEL: graph.SerializeToString(), TOKENIZER: tokenizer.to_str(pretty=False).encode("utf-8")}
    config = {
        "format": FORMAT,
        "name": name or f"{label.rpartition('/')[2]}-int8",
        "dim": int(settings["hidden_size"]),
        "max_tokens": tokens,
        "source": {"model": label, "sha256": fingerprint_of(source), "licence": licence_of(source)},
        "made": {"by": "zettel.embed.export.export_onnx", "onnx": onnx.__version__, "numpy": version("numpy")},
        "sha256": {file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).unlink(missing_ok=True)  # written last: readers reject a folder without it
    for file, content in files.items():
        (folder / file).write_bytes(content)
    (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return OnnxEmbedder(folder)


def quantized_columns(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Split (k, n) weights into (k, n) int8 and (n,) float32 with weights ≈ int8 * scale.

    Two neighbours in a column add up to at most ``PAIR_MAX``.
    """
    size = np.abs(weight.astype(np.float64))
    pairs = size[0::2] + size[1::2]
    scale = np.maximum(size.max(axis=0) / INT8_MAX, pairs.max(axis=0) / (PAIR_MAX - 1))  # 1 for rounding
    scale[scale == 0] = 1
    return np.rint(weight / scale).astype(np.int8), scale.astype(np.float32)


def _settings(source: Path) -> dict[str, Any]:
    """Return config.json of a supported transformer."""
    settings = _read(source, "config.json")
    if not settings:
        raise EmbedderUnreadable(f"{source} does not contain a transformer that can be exported: no config.json")
    found = tuple(settings.get(key, default) for key, default in zip(SHAPE, SUPPORTED, strict=True))
    pooling = _read(source, "1_Pooling/config.json")
    mean = pooling.get("pooling_mode_mean_tokens") and not pooling.get("pooling_mode_cls_token")
    prompts = any((_read(source, "config_sentence_transformers.json").get("prompts") or {}).values())
    if found != SUPPORTED or not mean or prompts or settings.get("is_decoder"):
        raise InvalidInput(
            f"{source} cannot be exported: only BERT models with mean pooling and without prompts can; "
            "use it with embedder='transformer:…'"
        )
    return settings


def _read(folder: Path, file: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / file).read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


class _Graph:
    """Builds the graph: (b, t) token ids without padding to (b, t, dim) states."""

    def __init__(self, weights: Mapping[str, Any], settings: Mapping[str, Any], max_tokens: int) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy_helper = helper, numpy_helper
        prefix = "" if "embeddings.word_embeddings.weight" in weights else "bert."
        self._weights = {name.removeprefix(prefix): value for name, value in weights.items()}
        self._settings = settings
        self._max_tokens = max_tokens
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def build(self) -> Any:
        from onnx import TensorProto

        helper, dim = self._helper, int(self._settings["hidden_size"])
        self._constant("middle", np.uint8(MIDDLE))
        self._constant("step", np.float32(1 / INT8_MAX))
        self._constant("gelu_zero", np.uint8(GELU_ZERO))
        self._constant("gelu_step", np.float32(1 / (UINT8_MAX - GELU_ZERO)))
        self._constant("gelu_floor", np.float32(GELU_LOWEST * (UINT8_MAX - GELU_ZERO) / GELU_ZERO))
        states = self._embeddings()
        for place in range(int(self._settings["num_hidden_layers"])):
            states = self._layer(place, states)
        graph = helper.make_graph(
            self._nodes,
            "sentence-transformer",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "t"])],
            [helper.make_tensor_value_info(states, TensorProto.FLOAT, ["b", "t", dim])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, CONTRIB_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="zettel")
        model.ir_version = IR_VERSION
        return model

    def _embeddings(self) -> str:
        from onnx import TensorProto

        words, scale = quantized_rows(self._floats("embeddings.word_embeddings.weight"))
        first_type = self._floats("embeddings.token_type_embeddings.weight")[0]
        positions = self._floats("embeddings.position_embeddings.weight")[: self._max_tokens] + first_type
        ids = self._add("Gather", [self._constant("words", words), "input_ids"], "word_int8")
        rows = self._add("Cast", [ids], "word_float", to=TensorProto.FLOAT)
        scales = self._add("Gather", [self._constant("word_scales", scale), "input_ids"], "word_scale")
        rows = self._add("Mul", [rows, scales], "word")
        length = self._add("Shape", ["input_ids"], "length", start=1, end=2)
        zero = self._constant("zero", np.zeros(1, np.int64))
        places = self._add("Slice", [self._constant("positions", positions), zero, length, zero], "position")
        return self._norm("embeddings.LayerNorm", self._add("Add", [rows, places], "embedding"), "states")

    def _layer(self, place: int, states: str) -> str:
        source, at = f"encoder.layer.{place}.", f"{place}."
        heads, dim = int(self._settings["num_attention_heads"]), int(self._settings["hidden_size"])
        parts = [source + f"attention.self.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self._floats(f"{part}.weight") for part in parts])  # (3 * dim, dim)
        bias = np.concatenate([self._floats(f"{part}.bias") for part in parts])
        joined = self._product(self._rounded(states, at + "in"), weight, at + "qkv")
        sizes = self._constant(at + "sizes", np.full(3, dim, np.int64))
        names = [at + "query", at + "key", at + "value"]
        self._nodes.append(self._helper.make_node("Split", [joined, sizes], names, name=at + "split", axis=-1))
        mixed = self._add(
            "MultiHeadAttention",
            [*names, self._constant(at + "qkv_bias", bias)],
            at + "attention",
            domain=CONTRIB,
            num_heads=heads,
        )
        states = self._residual(source + "attention.output", self._rounded(mixed, at + "mixed"), states, at + "out")
        weight = self._floats(source + "intermediate.dense.weight")
        inner = self._product(self._rounded(states, at + "middle"), weight, at + "inner")
        inner_bias = self._constant(at + "inner_bias", self._floats(source + "intermediate.dense.bias"))
        inner = self._add("BiasGelu", [inner, inner_bias], at + "gelu", domain=CONTRIB)
        return self._residual(source + "output", self._rounded_gelu(inner, at + "gelu"), states, at + "states")

    def _residual(self, source: str, rounded: tuple[str, str, str, str], states: str, at: str) -> str:
        """Product, bias and residual, normalised."""
        product = self._product(rounded, self._floats(f"{source}.dense.weight"), f"{at}_dense")
        bias = self._constant(f"{at}_bias", self._floats(f"{source}.dense.bias"))
        biased = self._add("Add", [states, bias], f"{at}_biased")
        return self._norm(f"{source}.LayerNorm", self._add("Add", [product, biased], f"{at}_sum"), at)

    def _rounded(self, values: str, at: str) -> tuple[str, str, str, str]:
        """Round each row to its largest size: the uint8, the (…, 1) largest sizes, and names of scale and zero."""
        size = self._add("Abs", [values], f"{at}_size")
        peak = self._add("ReduceMax", [size], f"{at}_peak", axes=[-1], keepdims=1)
        unit = self._add("Div", [values, peak], f"{at}_unit")
        return self._add("QuantizeLinear", [unit, "step", "middle"], f"{at}_uint8"), peak, "step", "middle"

    def _rounded_gelu(self, values: str, at: str) -> tuple[str, str, str, str]:
        """The same for results of GELU, with more steps above zero."""
        top = self._add("ReduceMax", [values], f"{at}_top", axes=[-1], keepdims=1)
        peak = self._add("Max", [top, "gelu_floor"], f"{at}_peak")
        unit = self._add("Div", [values, peak], f"{at}_unit")
        rounded = self._add("QuantizeLinear", [unit, "gelu_step", "gelu_zero"], f"{at}_uint8")
        return rounded, peak, "gelu_step", "gelu_zero"

    def _product(self, rounded: tuple[str, str, str, str], weight: Floats, at: str) -> str:
        """Multiply rounded rows by (out, in) weights, without the bias."""
        values, peak, step, zero = rounded
        columns, scale = quantized_columns(weight.T)
        inputs = [
            values, self._constant(f"{at}_int8", columns), step, self._constant(f"{at}_scale", scale), zero
        ]  # fmt: skip
        product = self._add("MatMulIntegerToFloat", inputs, f"{at}_unit", domain=CONTRIB)
        return self._add("Mul", [product, peak], f"{at}_product")

    def _norm(self, source: str, values: str, at: str) -> str:
        gain = self._constant(f"{at}_gain", self._floats(f"{source}.weight"))
        shift = self._constant(f"{at}_shift", self._floats(f"{source}.bias"))
        epsilon = float(self._settings.get("layer_norm_eps", 1e-12))
        return self._add("LayerNormalization", [values, gain, shift], at, axis=-1, epsilon=epsilon)

    def _floats(self, name: str) -> Floats:
        return np.asarray(self._weights[name], dtype=np.float32)

    def _constant(self, name: str, value: Any) -> str:
        array = np.ascontiguousarray(value).reshape(np.shape(value))  # a scalar stays one
        self._constants.append(self._numpy_helper.from_array(array, name))
        return name

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(self._helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output


def quantized_rows(rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Split (v, d) rows into (v, d) int8 and (v, 1) float32 with rows ≈ int8 * scale."""
    scale = np.abs(rows).max(axis=1, keepdims=True) / INT8_MAX
    scale[scale == 0] = 1
    return np.rint(rows / scale).astype(np.int8), scale.astype(np.float32)
