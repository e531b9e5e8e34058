"""The memory decoder: a question reads the notes on its shortlist, and they read it and each other, through gates.

The gates are those of LM2 (Kang, Wu, Christianos, Chan, Greenlee, Thomas, Purtorab, Toulis 2025, "LM2: Large Memory
Models"): an output gate bounds what a reader takes from memory, an input gate what is written to a slot, a forget gate
what the slot keeps. There a slot is a learned place of a long text's memory; here it is a note. What is added is that
the slots also read each other, along links, time and likeness, so that what a note is worth may depend on the others.

Letters in shapes: b questions, m slots, q states of a question, d numbers of each (the width), h heads.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn
from torch.nn import functional as F

from zettel.arguments import first_complaint
from zettel.errors import ScorerError
from zettel.model import LinkType
from zettel.scoring.attention import BLOCKED, OPEN, Attention
from zettel.scoring.bank import SlotBank
from zettel.scoring.slots import FEATURE_VERSION, PAIR_FEATURES, QUESTION_FEATURES, SLOT_FEATURES

if TYPE_CHECKING:
    from collections.abc import Mapping

BIASES = {
    "talk": ("same session", "neighbours", "near neighbours", "same speaker"),
    "alike": ("cosine", "shared term"),
    "time": ("time gap",),
    "links": ("two hops", *(f"{kind.value} {way}".lower() for kind in LinkType for way in ("out", "in"))),
}
"""What two notes have to do with each other, by the part that it is left out with."""

SIZES = {
    "width": (1, 1024), "heads": (1, 64), "layers": (1, 32), "states": (1, 256), "dropout": (0.0, 0.9),
    "vector": (0, 16_384), "bank": (0, 4096),
}  # fmt: skip
"""The least and the most of each: a damaged file asks for no memory that nobody has."""


@dataclass(frozen=True, slots=True)
class MemoryDecoderConfig:
    """What a memory decoder is built of; ``gates``, ``setwise``, ``biases`` and ``bank`` are there for ablations.

    ``embedder``: the fingerprint of the embedder whose vectors it learned from; "": it reads no vectors. ``biases``:
    those of ``BIASES`` that are learned from. ``bank``: how many slots a scope has; 0: it has none. ``talk_only``:
    notes none of which belongs to a session (documents) stay in the default scorer's order. Raises ``ScorerError`` for
    a bank without vectors, a bias that there is not, or a size outside SIZES.
    """

    width: int = 32
    heads: int = 4
    layers: int = 1
    states: int = 4
    dropout: float = 0.2
    vector: int = 0
    embedder: str = ""
    gates: bool = True
    setwise: bool = True
    biases: tuple[str, ...] = tuple(BIASES)
    bank: int = 0
    talk_only: bool = False
    features: int = FEATURE_VERSION

    def __post_init__(self) -> None:
        for name, (least, most) in SIZES.items():
            if not least <= getattr(self, name) <= most:
                raise ScorerError(f"{name} is {getattr(self, name)}; a memory decoder has {least} to {most}")
        if self.width % self.heads:
            raise ScorerError(f"a width of {self.width} cannot be shared by {self.heads} heads")
        if unknown := sorted(set(self.biases) - set(BIASES)):
            raise ScorerError(f"there is no bias {unknown[0]!r}; there are {', '.join(BIASES)}")
        if self.bank and not self.vector:
            raise ScorerError("a bank of slots is written from vectors: a decoder that reads none has no bank")

    @classmethod
    def from_json(cls, text: str) -> MemoryDecoderConfig:
        """The inverse of ``to_json``. Raises ``ScorerError``."""
        try:
            told: Mapping[str, Any] = json.loads(text)
            known = {field.name for field in fields(cls)}
            if not isinstance(told, dict) or set(told) | {"talk_only"} != known:
                raise ScorerError("config.json is not that of a memory decoder")
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            raise ScorerError(f"config.json cannot be read: {first_complaint(error)}") from error
        except (ValueError, TypeError) as error:
            raise ScorerError(f"config.json cannot be read: {error}") from error

    def to_json(self) -> str:
        """As config.json."""
        return json.dumps(asdict(self), indent=1) + "\n"


class MemoryDecoderLayer(nn.Module):
    """One layer. E are the question's states, M the slots, as in LM2:

        E      <- E + SelfAttention(E)
        E_mem   = CrossAttention(E, M)
        g_out   = sigmoid(E_mem W_out)              E <- E + g_out * E_mem
        R       = Attention(M, [E; M])              what a slot reads; LM2 writes E_mem itself
        g_in    = sigmoid(R W_in)                   g_forget = sigmoid(R W_forget)
        M      <- g_in * tanh(R) + g_forget * M
        E, M   <- each + its feed-forward network

    Each reading is of layer-normed values. With a bank of the scope's slots B, M is [M; B] wherever it is read. Without
    ``gates`` every product with a gate is the value itself.
    """

    def __init__(self, config: MemoryDecoderConfig) -> None:
        super().__init__()
        width, heads = config.width, config.heads
        self.config = config
        self.self_attention = Attention(width, heads)
        self.cross_attention = Attention(width, heads)
        self.slot_attention = Attention(width, heads)
        told = {name for group in config.biases for name in BIASES[group]}
        self.bias = nn.Linear(len(PAIR_FEATURES), heads, bias=False)
        self.register_buffer("told", torch.tensor([float(name in told) for name in PAIR_FEATURES]), persistent=False)
        self.output_gate = nn.Linear(width, width)
        self.input_gate = nn.Linear(width, width)
        self.forget_gate = nn.Linear(width, width)
        nn.init.constant_(self.forget_gate.bias, OPEN)
        self.state_norm, self.slot_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.state_network = _feed_forward(width, config.dropout)
        self.slot_network = _feed_forward(width, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, states: Tensor, slots: Tensor, pairs: Tensor, absent: Tensor, bank: Tensor
    ) -> tuple[Tensor, Tensor]:
        """States (b, q, d) and slots (b, m, d) as they are after it.

        ``pairs`` is (b, m, m, PAIR_FEATURES), ``absent`` (b, m), and ``bank`` (b, s, d), s 0 without one.
        """
        gates = self.config.gates
        gone = torch.zeros_like(absent, dtype=slots.dtype).masked_fill(absent, BLOCKED)[:, None, None]  # (b, 1, 1, m)
        normed = self.state_norm(states)
        states = states + self.dropout(self.self_attention(normed, normed, None))
        memory = self.slot_norm(slots)
        kept = self.slot_norm(bank)
        open_ = gone.new_zeros((len(gone), 1, 1, bank.shape[1]))  # (b, 1, 1, s)
        read = self.cross_attention(
            self.state_norm(states), torch.cat([memory, kept], dim=1), torch.cat([gone, open_], dim=3)
        )  # (b, q, d)
        states = states + self.dropout(torch.sigmoid(self.output_gate(read)) * read if gates else read)
        normed = self.state_norm(states)
        if self.config.setwise:
            bias = gone
            if self.config.biases:
                weight = self.bias.weight * self.told  # (h, PAIR_FEATURES)
                bias = gone + F.linear(pairs, weight).permute(0, 3, 1, 2)  # (b, m, m, h) -> (b, h, m, m)
            beside = torch.cat([normed, kept], dim=1)  # (b, q + s, d)
            to_beside = bias.new_zeros((*bias.shape[:3], beside.shape[1]))  # (b, h or 1, m or 1, q + s)
            bias = torch.cat([to_beside, bias], dim=3)  # (b, h or 1, m or 1, q + s + m)
            told = self.slot_attention(memory, torch.cat([beside, memory], dim=1), bias)  # (b, m, d)
        else:
            told = self.slot_attention(memory, torch.cat([normed, kept], dim=1), None)
        if gates:
            remains = torch.sigmoid(self.forget_gate(told)) * slots
            slots = torch.sigmoid(self.input_gate(told)) * self.dropout(torch.tanh(told)) + remains
        else:
            slots = slots + self.dropout(told)
        return states + self.state_network(states), slots + self.slot_network(slots)


class MemoryDecoder(nn.Module):
    """Scores all notes of a shortlist together: the default scorer's log share, times a learned factor, and what this
    adds. Its last layer starts at zero, so that untrained it is the default scorer."""

    def __init__(self, config: MemoryDecoderConfig) -> None:
        super().__init__()
        width = config.width
        self.config = config
        self.slot = nn.Linear(len(SLOT_FEATURES) + len(QUESTION_FEATURES), width)
        self.question = nn.Linear(len(QUESTION_FEATURES), config.states * width)
        self.vector = nn.Linear(config.vector, width, bias=False) if config.vector else None
        self.bank = SlotBank(config.bank, config.vector, width, config.heads, config.gates) if config.bank else None
        self.layers = nn.ModuleList(MemoryDecoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.trust = nn.Parameter(torch.ones(1))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, shown: Batch) -> Tensor:
        """Log-odds of each note, (b, m); what is absent has BLOCKED."""
        asked = shown.question[:, None].expand(-1, shown.slots.shape[1], -1)  # (b, g) -> (b, m, g)
        slots = self.slot(torch.cat([shown.slots, asked], dim=2))  # (b, m, d)
        states = self.question(shown.question).unflatten(1, (self.config.states, -1))  # (b, q d) -> (b, q, d)
        if self.vector is not None:
            notes, question = self.vector(shown.vectors), self.vector(shown.vector)  # (b, m, d), (b, d)
            slots = slots + notes * question[:, None]
            states = states + question[:, None]
        slots, states = self.dropout(F.gelu(slots)), F.gelu(states)
        bank = shown.bank
        if self.bank is not None:
            bank = torch.where(shown.written[:, None, None], bank, self.bank.start)  # (b, s, d)
        for layer in self.layers:
            states, slots = layer(states, slots, shown.pairs, shown.absent, bank)
        added = self.out(self.norm(slots)).squeeze(2)  # (b, m)
        return (self.trust * shown.score + added).masked_fill(shown.absent, BLOCKED)


@dataclass(frozen=True, slots=True)
class Batch:
    """Several questions with their shortlists, as long as the longest: see :class:`zettel.scoring.slots.Shown`."""

    slots: Tensor  # (b, m, SLOT_FEATURES)
    question: Tensor  # (b, QUESTION_FEATURES)
    pairs: Tensor  # (b, m, m, PAIR_FEATURES)
    vectors: Tensor  # (b, m, vector); (b, m, 0) for a model that reads none
    vector: Tensor  # (b, vector)
    score: Tensor  # (b, m)
    absent: Tensor  # (b, m) bool: no note
    bank: Tensor  # (b, s, width) the scope's slots; s 0 for a model without
    written: Tensor  # (b,) bool: the slots are known; else they are as nothing was written to them


def _feed_forward(width: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(dropout)
    )
