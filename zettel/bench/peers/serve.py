"""The child process of a peer: answers JSON lines on stdin by a driver, in the peer's environment, without zettel.

``python -I serve.py DRIVER FOLDER ADDRESS`` loads the driver's file and opens its peer in a folder. The driver defines
``open_peer(folder, embed)``, which returns an object with these methods:

* ``add_many(items)``: items have ``id`` and ``text``; when it returns, they are as durable as the peer can make them;
* ``search(question, k)``: returns the ids of the hits, best first;
* ``delete(ids)``, in the peer's own way;
* optional: ``flush()``, which waits for the rest of the work on added items, and ``close()``.

``embed(texts)`` returns one vector per text. The parent computes it, so that all peers have the same one, and the
memory of a child does not include the model.

The first answer means that the peer is open. Requests are ``{"do": NAME, "arguments": {…}}``, answers are
``{"result": …, "seconds": …}``. An error ends the process, with the error in the last line of stderr.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from array import array
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing.connection import Client
from typing import Any, TextIO

METHODS = ("add_many", "search", "delete")
OPTIONAL = ("flush", "close")
LOCAL = ("127.0.0.1", "::1", "localhost")


def main() -> None:
    """Open the peer and answer requests until ``close`` or the end of stdin."""
    driver, folder, address = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the prints of a peer do not mix with the answers
    sys.addaudithook(_refuse_network)
    began = time.perf_counter()
    peer = _load(driver)(folder, _embedding(address))
    _answer(answers, None, began)
    for line in sys.stdin:
        request = json.loads(line)
        began = time.perf_counter()
        _answer(answers, _do(peer, request["do"], request["arguments"]), began)
        if request["do"] == "close":
            return


def _do(peer: Any, name: str, arguments: dict[str, Any]) -> Any:
    if name not in METHODS + OPTIONAL:
        raise ValueError(f"no method {name!r}")
    return None if name in OPTIONAL and not hasattr(peer, name) else getattr(peer, name)(**arguments)


def _answer(answers: TextIO, result: Any, began: float) -> None:
    answers.write(json.dumps({"result": result, "seconds": time.perf_counter() - began}) + "\n")
    answers.flush()


def _load(driver: str) -> Callable[[str, Callable[[list[str]], list[list[float]]]], Any]:
    spec = spec_from_file_location("driver", driver)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["driver"] = module
    spec.loader.exec_module(module)
    return module.open_peer  # type: ignore[no-any-return]


def _embedding(address: str) -> Callable[[list[str]], list[list[float]]]:
    connection = Client(address)
    lock = threading.Lock()

    def embed(texts: list[str]) -> list[list[float]]:
        if not texts:
            return []
        with lock:
            connection.send_bytes(json.dumps(list(texts)).encode())
            numbers = array("f", connection.recv_bytes())
        dim = len(numbers) // len(texts)
        return [numbers[start : start + dim].tolist() for start in range(0, len(numbers), dim)]

    return embed


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse connections to other machines: nothing is measured that needs them."""
    if event == "socket.getaddrinfo" and arguments[0] not in (None, *LOCAL):
        raise OSError(f"no network in this benchmark: {arguments[0]}")
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in LOCAL:
        raise OSError(f"no network in this benchmark: {arguments[1][0]}")


if __name__ == "__main__":
    main()
