"""A bank of slots for a scope: a fixed number of vectors that its notes are written to, in the order of their ``seq``.

As LM2's memory bank (see :mod:`zettel.scoring.decoder_model`) it is read by cross-attention and written through an
input and a forget gate; as in MemoryLLM (Wang et al. 2024) and Larimar (Das et al. 2024) it outlives the question.
What stands in it is a pure function of the notes' vectors and the weights, so that it can be made anew at any time.

Letters in shapes: b scopes, n notes of each, v numbers of a vector, s slots, d the width.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from zettel.scoring.attention import BLOCKED, OPEN, Attention

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.query import Floats

CHUNK = 32
"""Notes that are written at once: the slots divide them among themselves."""
_NAME_CHARS = 16  # of a sha256


class SlotBank(nn.Module):
    """What is written at once, X being the notes, M the slots:

        R  = Attention(M, X)            g_in = sigmoid(R W_in)          g_forget = sigmoid(R W_forget)
        M <- g_in * tanh(R) + g_forget * M

    Without ``gates``: M <- M + R. ``start`` are the slots of a scope that nothing was written to.
    """

    def __init__(self, slots: int, vector: int, width: int, heads: int, gates: bool) -> None:
        super().__init__()
        self.gates = gates
        self.start = nn.Parameter(torch.randn(slots, width))
        self.note = nn.Linear(vector, width)
        self.attention = Attention(width, heads)
        self.slot_norm, self.note_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.input_gate, self.forget_gate = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.constant_(self.forget_gate.bias, OPEN)

    def forward(self, notes: Tensor, absent: Tensor, slots: Tensor | None = None) -> Tensor:
        """The slots after these notes, (b, n, v), absent ones (b, n) excepted: (b, s, d).

        ``slots`` are those before them; None: nothing was written yet. n notes written at once are the same as in two
        calls, if the first of these has a multiple of CHUNK.
        """
        if slots is None:
            slots = self.start.expand(len(notes), -1, -1)  # (s, d) -> (b, s, d)
        for some, gone in zip(notes.split(CHUNK, dim=1), absent.split(CHUNK, dim=1), strict=True):
            slots = self._written(slots, self.note_norm(self.note(some)), gone)
        return slots

    def _written(self, slots: Tensor, notes: Tensor, absent: Tensor) -> Tensor:
        gone = torch.zeros_like(absent, dtype=slots.dtype).masked_fill(absent, BLOCKED)[:, None, None]  # (b, 1, 1, n)
        told = self.attention(self.slot_norm(slots), notes, gone)  # (b, s, d)
        if self.gates:
            kept = torch.sigmoid(self.forget_gate(told)) * slots
            after = torch.sigmoid(self.input_gate(told)) * torch.tanh(told) + kept
        else:
            after = slots + told
        return torch.where(absent.all(dim=1)[:, None, None], slots, after)  # (b, s, d)

    def of_scopes(self, histories: Sequence[Floats]) -> Tensor:
        """The slots of several scopes, each with its notes' vectors (n, v): (b, s, d)."""
        vector, longest = self.note.in_features, max(map(len, histories), default=0)
        notes = self.start.new_zeros(len(histories), longest, vector)
        absent = torch.ones(len(histories), longest, dtype=torch.bool, device=notes.device)
        for place, history in enumerate(histories):
            notes[place, : len(history)] = torch.from_numpy(history).to(notes.device)
            absent[place, : len(history)] = False
        return self(notes, absent)


class BankWriter:
    """A trained bank as the search keeps it (see ``zettel.search.slots.Bank``)."""

    chunk = CHUNK

    def __init__(self, bank: SlotBank, embedder: str) -> None:
        self.embedder = embedder
        self._bank = bank
        weights = b"".join(tensor.cpu().numpy().tobytes() for tensor in bank.state_dict().values())
        self.name = hashlib.sha256(weights).hexdigest()[:_NAME_CHARS]

    def write(self, vectors: Floats, slots: Floats | None) -> Floats:
        """The slots (s, d) after notes with these vectors (n, v); ``slots`` are those before, None: none yet."""
        start = self._bank.start
        before = None if slots is None else torch.from_numpy(slots).to(start.device)[None]  # (1, s, d)
        notes = torch.from_numpy(vectors).to(start.device)[None]  # (1, n, v)
        absent = notes.new_zeros(notes.shape[:2], dtype=torch.bool)  # (1, n)
        with torch.inference_mode():
            after: Floats = self._bank(notes, absent, before)[0].cpu().numpy()
        return after
