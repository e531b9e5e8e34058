"""The command mcp: the MCP server."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import typer

from zettel.errors import InvalidInput

from .common import common, notify


def mcp(
    ctx: typer.Context,
    http: bool = typer.Option(False, "--http", help="Serve streamable HTTP instead of stdin and stdout."),
    host: str | None = typer.Option(None, "--host", help="With --http: a loopback address, by default 127.0.0.1."),
    port: int | None = typer.Option(
        None, "--port", min=0, max=65_535, help="With --http: the port, by default 8765; 0 chooses a free port."
    ),
    read_only: bool = typer.Option(False, "--read-only", help="Leave out every tool that changes the memory."),
    allow_delete: bool = typer.Option(
        False, "--allow-delete", help="Also offer delete_memory, which deletes for good."
    ),
    knowledge_graph: bool = typer.Option(
        False, "--knowledge-graph", help="Offer the tools of MCP's reference server-memory instead."
    ),
    trust: float = typer.Option(1.0, "--trust", min=0, max=1, help="Highest trust in what clients write, 0 to 1."),
) -> None:
    """Serve this memory to MCP clients, over stdio or HTTP.

    Clients get tools, prompts, and notes with their histories as resources. --tenant, --user and --agent fix the
    scope, and no request can change it. Ctrl-C, SIGTERM and the end of stdin stop the server cleanly.

    \b
    Examples:
      zettel mcp --store ~/zettel.db --user ann
      zettel mcp --http --port 8765 --read-only
      zettel mcp --store ~/zettel.db --knowledge-graph
      claude mcp add zettel -- zettel mcp --store ~/zettel.db
    """
    from zettel.integrations.mcp_server import (
        DEFAULT_PORT,
        address_of,
        claimed_stdout,
        knowledge_graph_server,
        listening,
        mcp_server,
        require_mcp,
        serve_http,
        serve_stdio,
    )

    options = common(ctx)
    if not http and (host is not None or port is not None):
        raise InvalidInput("--host and --port require --http: add --http, or leave them out")
    if read_only and allow_delete:
        raise InvalidInput("--read-only leaves out every tool that changes the memory: leave out --allow-delete")
    if knowledge_graph and allow_delete:
        raise InvalidInput("--knowledge-graph has tools of its own that delete: leave out --allow-delete")
    require_mcp()
    import anyio

    with ExitStack() as stack:
        if http:
            at = stack.enter_context(listening(host or "127.0.0.1", DEFAULT_PORT if port is None else port))
        else:
            wire = stack.enter_context(claimed_stdout())
        memory = stack.enter_context(options.memory(create=not read_only, run_llm_jobs=not read_only))
        if knowledge_graph:
            server = knowledge_graph_server(memory, read_only=read_only, trust=trust)
        else:
            server = mcp_server(memory, read_only=read_only, allow_delete=allow_delete, trust=trust)
        stack.enter_context(stopped_by_signals())
        if http:
            notify(f"zettel: MCP at {address_of(at)}")
            anyio.run(serve_http, server, at)
        else:
            anyio.run(serve_stdio, server, wire)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Stop a server cleanly on SIGTERM and Ctrl-C: running requests finish, and the memory is closed.

    SIGTERM is turned into SIGINT, for which asyncio cancels the main task; raising an exception could hit any task.
    Python's SIGINT handler is installed because a shell that starts a process with ``&`` disables it.
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
