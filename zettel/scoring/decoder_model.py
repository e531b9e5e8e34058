"""The memory decoder: a small transformer that scores all notes of a shortlist together.

The question and the notes exchange information through the gates of LM2 (Kang et al. 2025, "LM2: Large Memory
Models"). In LM2 the memory consists of learned slots; here every slot is a note, and notes also attend to each other
with a bias for each pair (same session, time gap, links, ...).

Letters in shapes: b questions, m notes, q states of a question, d width, h heads, f note features, g question
features, p pair features, v numbers of a vector.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn
from torch.nn import functional as F

from zettel.core.arguments import first_complaint
from zettel.errors import ScorerError
from zettel.scoring.decoder_inputs import FEATURE_VERSION, NOTE_FEATURES, PAIR_FEATURES, QUESTION_FEATURES

MASKED = -1e4
"""Attention bias and score of padding. Finite, so that a fully masked row yields no NaN."""
FORGET_BIAS_INIT = 2.0
"""Initial bias of the forget gate: sigmoid(2) = 0.88 of a note's state survives a layer."""

LIMITS = {
    "width": (1, 1024), "heads": (1, 64), "layers": (1, 32), "states": (1, 256), "dropout": (0.0, 0.9),
    "vector_dim": (0, 16_384),
}  # fmt: skip
"""Accepted range of each size, so that a damaged config.json cannot allocate unlimited memory."""


@dataclass(frozen=True, slots=True)
class MemoryDecoderConfig:
    """The size of a memory decoder, and the inputs it was trained on.

    ``states``: states of a question. ``vector_dim``: 0 for a decoder that reads no vectors. ``embedder``: fingerprint
    of the embedder that made the vectors. ``conversations_only``: documents stay in the default scorer's order.
    Raises ``ScorerError`` for a value outside ``LIMITS``.
    """

    width: int = 32
    heads: int = 4
    layers: int = 1
    states: int = 4
    dropout: float = 0.2
    vector_dim: int = 0
    embedder: str = ""
    conversations_only: bool = False
    feature_version: int = FEATURE_VERSION

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            if not least <= getattr(self, name) <= most:
                raise ScorerError(f"{name}={getattr(self, name)} must be between {least} and {most}")
        if self.width % self.heads:
            raise ScorerError(f"width={self.width} must be a multiple of heads={self.heads}")

    @classmethod
    def from_json(cls, text: str) -> MemoryDecoderConfig:
        """Parse config.json. Raises ``ScorerError``."""
        try:
            names = json.loads(text).keys()
            if names != {field.name for field in fields(cls)}:
                raise ScorerError("config.json has the wrong fields: train the decoder again")
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            raise ScorerError(f"config.json cannot be read: {first_complaint(error)}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise ScorerError(f"config.json cannot be read: {error}") from error

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class DecoderBatch:
    """Several :class:`~zettel.scoring.decoder_inputs.DecoderInput`, padded to the longest shortlist."""

    notes: Tensor  # (b, m, f)
    question: Tensor  # (b, g)
    pairs: Tensor  # (b, m, m, p)
    note_vectors: Tensor  # (b, m, v)
    question_vector: Tensor  # (b, v)
    base_score: Tensor  # (b, m)
    padding_mask: Tensor  # (b, m) bool, True at padding


class Attention(nn.Module):
    """Multi-head scaled dot-product attention (Vaswani et al. 2017) with an additive bias."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None = None) -> Tensor:
        """(b, x, d) attends to (b, y, d) -> (b, x, d); ``bias`` broadcasts to (b, h, x, y)."""
        query, key, value = self.query(x), self.key(memory), self.value(memory)
        query, key, value = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in (query, key, value))
        attn_out = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)  # (b, h, x, d / h)
        return self.out(attn_out.transpose(1, 2).flatten(2))  # (b, x, d)


class MemoryDecoderLayer(nn.Module):
    """One layer, with pre-norm. S are the question's states, N the notes:

    S    <- S + SelfAttention(S)
    A     = CrossAttention(S, N)
    S    <- S + sigmoid(A W_out) * A
    B     = Attention(N, [S; N])                LM2 writes A itself
    N    <- sigmoid(B W_in) * tanh(B) + sigmoid(B W_forget) * N
    S, N <- each + MLP
    """

    def __init__(self, config: MemoryDecoderConfig) -> None:
        super().__init__()
        width, heads = config.width, config.heads
        self.self_attention = Attention(width, heads)
        self.cross_attention = Attention(width, heads)
        self.note_attention = Attention(width, heads)
        self.pair_bias = nn.Linear(len(PAIR_FEATURES), heads, bias=False)
        self.output_gate = nn.Linear(width, width)
        self.input_gate = nn.Linear(width, width)
        self.forget_gate = nn.Linear(width, width)
        nn.init.constant_(self.forget_gate.bias, FORGET_BIAS_INIT)
        self.state_norm, self.note_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.state_mlp = mlp(width, config.dropout)
        self.note_mlp = mlp(width, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, notes: Tensor, pairs: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        """(b, q, d), (b, m, d), (b, m, m, p), (b, m) -> (b, q, d), (b, m, d)"""
        padding_bias = torch.zeros_like(padding_mask, dtype=notes.dtype).masked_fill(padding_mask, MASKED)
        padding_bias = padding_bias[:, None, None]  # (b, 1, 1, m)
        x, memory = self.state_norm(states), self.note_norm(notes)
        states = states + self.dropout(self.self_attention(x, x))
        attn_out = self.cross_attention(self.state_norm(states), memory, padding_bias)  # (b, q, d)
        states = states + self.dropout(self.read(attn_out))
        attn_out = self.attend(memory, self.state_norm(states), pairs, padding_bias)  # (b, m, d)
        notes = self.write(notes, attn_out)
        return states + self.state_mlp(states), notes + self.note_mlp(notes)

    def read(self, attn_out: Tensor) -> Tensor:
        """The gated update of the question's states: (b, q, d) -> (b, q, d)."""
        return torch.sigmoid(self.output_gate(attn_out)) * attn_out

    def attend(self, memory: Tensor, states: Tensor, pairs: Tensor, padding_bias: Tensor) -> Tensor:
        """Notes attend to the question and to all notes: (b, m, d) -> (b, m, d)."""
        bias = padding_bias + self.pair_bias(pairs).permute(0, 3, 1, 2)  # (b, h, m, m)
        bias = F.pad(bias, (states.shape[1], 0))  # (b, h, m, q + m)
        return self.note_attention(memory, torch.cat([states, memory], dim=1), bias)

    def write(self, notes: Tensor, attn_out: Tensor) -> Tensor:
        """The gated update of the notes: (b, m, d), (b, m, d) -> (b, m, d)."""
        update = torch.sigmoid(self.input_gate(attn_out)) * self.dropout(torch.tanh(attn_out))
        return update + torch.sigmoid(self.forget_gate(attn_out)) * notes


class MemoryDecoder(nn.Module):
    """Adds a correction to the default scorer's log score. The output layer starts at zero: an untrained decoder
    ranks as the default scorer does."""

    layer_class = MemoryDecoderLayer

    def __init__(self, config: MemoryDecoderConfig) -> None:
        super().__init__()
        width = config.width
        self.config = config
        self.note_in = nn.Linear(len(NOTE_FEATURES) + len(QUESTION_FEATURES), width)
        self.question_in = nn.Linear(len(QUESTION_FEATURES), config.states * width)
        self.vector_in = nn.Linear(config.vector_dim, width, bias=False) if config.vector_dim else None
        self.layers = nn.ModuleList(self.layer_class(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.base_weight = nn.Parameter(torch.ones(1))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, batch: DecoderBatch) -> Tensor:
        """Log-odds of each note, (b, m); MASKED at padding."""
        question = batch.question[:, None].expand(-1, batch.notes.shape[1], -1)  # (b, m, g)
        notes = self.note_in(torch.cat([batch.notes, question], dim=2))  # (b, m, d)
        states = self.question_in(batch.question).unflatten(1, (self.config.states, -1))  # (b, q, d)
        if self.vector_in is not None:
            query = self.vector_in(batch.question_vector)[:, None]  # (b, 1, d)
            notes = notes + self.vector_in(batch.note_vectors) * query
            states = states + query
        notes, states = self.dropout(F.gelu(notes)), F.gelu(states)
        for layer in self.layers:
            states, notes = layer(states, notes, batch.pairs, batch.padding_mask)
        correction = self.out(self.norm(notes)).squeeze(2)  # (b, m)
        return (self.base_weight * batch.base_score + correction).masked_fill(batch.padding_mask, MASKED)


def mlp(width: int, dropout: float) -> nn.Sequential:
    """Layer norm, one hidden layer of twice the width, dropout."""
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(dropout)
    )
