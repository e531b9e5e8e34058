"""A command line that was run in this process, and what it said."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


Zettel = Callable[..., Ran]
