"""Attention with several heads, and what the gates of LM2 begin with.

Letters in shapes: b questions or scopes, x readers, y what is read, d numbers of each (the width), h heads.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

BLOCKED = -1e4
"""Added to the attention to what is not there: the softmax of it is 0, and its gradient no NaN."""
OPEN = 2.0
"""Where a forget gate starts: a slot keeps 0.88 of itself."""


class Attention(nn.Module):
    """Scaled dot-product attention with h heads (Vaswani et al. 2017), and a bias for every pair."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, reader: Tensor, read: Tensor, bias: Tensor | None) -> Tensor:
        """(b, x, d) reading (b, y, d) -> (b, x, d); ``bias`` is (b, 1 or h, x or 1, y), added before the softmax."""
        query = self._split(self.query(reader))  # (b, h, x, d / h)
        key, value = self._split(self.key(read)), self._split(self.value(read))  # (b, h, y, d / h) each
        told = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)  # (b, h, x, d / h)
        return self.out(told.transpose(1, 2).flatten(2))  # (b, x, d)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)  # (b, x, d) -> (b, h, x, d / h)
