"""The result of a command line run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class CommandResult(NamedTuple):
    status: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


Zettel = Callable[..., CommandResult]
