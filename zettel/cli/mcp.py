"""The server of the Model Context Protocol."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import typer

from zettel.errors import InvalidInput

from .common import common, remark


def mcp(
    ctx: typer.Context,
    http: bool = typer.Option(False, "--http", help="Speak streamable HTTP, and not on stdin and stdout."),
    host: str | None = typer.Option(None, "--host", help="With --http: an address of this machine alone, 127.0.0.1."),
    port: int | None = typer.Option(
        None, "--port", min=0, max=65_535, help="With --http: 8765 unless said otherwise; 0 takes a free one."
    ),
    read_only: bool = typer.Option(False, "--read-only", help="Offer nothing that changes the memory."),
) -> None:
    """Give MCP clients this memory, over stdio or HTTP.

    They get tools, notes and their histories as resources, and prompts. Whose memory it is, --tenant, --user and
    --agent say here, and no request can change it. Ctrl-C and SIGTERM end it cleanly, and so does the end of stdin.

    \b
    Examples:
      zettel mcp --store ~/zettel.db --user ann
      zettel mcp --http --port 8765 --read-only
      claude mcp add zettel -- zettel mcp --store ~/zettel.db
    """
    from zettel.integrations.mcp_server import (
        DEFAULT_PORT,
        address_of,
        claimed_stdout,
        listening,
        mcp_server,
        require_mcp,
        serve_http,
        serve_stdio,
    )

    options = common(ctx)
    if not http and (host is not None or port is not None):
        raise InvalidInput("--host and --port are for --http; without it the protocol is spoken on stdin and stdout")
    require_mcp()
    import anyio

    with ExitStack() as stack:
        if http:
            at = stack.enter_context(listening(host or "127.0.0.1", DEFAULT_PORT if port is None else port))
        else:
            wire = stack.enter_context(claimed_stdout())
        memory = stack.enter_context(options.memory(create=not read_only, works=not read_only))
        made = mcp_server(memory, read_only=read_only)
        stack.enter_context(ended_by_a_signal())
        if http:
            remark(f"zettel: MCP at {address_of(at)}")
            anyio.run(serve_http, made, at)
        else:
            anyio.run(serve_stdio, made, wire)


@contextmanager
def ended_by_a_signal() -> Iterator[None]:
    """Inside, SIGTERM and Ctrl-C are how a server ends: what it had begun is finished, and the memory closed.

    SIGTERM becomes Ctrl-C, by which asyncio cancels the main task. An exception raised where the signal finds the code
    might stand in another task, and would come out in a group. asyncio looks for Python's own handler, which is not
    there in what a shell starts with ``&``: such processes ignore Ctrl-C.
    """
    former = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT)),
    }
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
