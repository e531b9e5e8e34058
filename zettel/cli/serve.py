"""The command serve: the HTTP server."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import typer

from zettel.errors import InvalidInput

from .common import common, notify
from .keys import KEYS_FILE, opened

MEGABYTE = 2**20


def serve(
    ctx: typer.Context,
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen at."),
    port: int | None = typer.Option(
        None, "--port", min=0, max=65_535, help="The port, by default 8766; 0 chooses a free port."
    ),
    keys: Path | None = KEYS_FILE,
    certfile: Path | None = typer.Option(None, "--certfile", metavar="FILE", help="The certificate, for HTTPS."),
    keyfile: Path | None = typer.Option(None, "--keyfile", metavar="FILE", help="Its private key."),
    behind_proxy: str | None = typer.Option(
        None, "--behind-proxy", metavar="ADDRESS", help="Address of a proxy that terminates TLS; it is trusted."
    ),
    rate: float = typer.Option(100, "--rate", metavar="N", min=0, help="Requests per second and key; 0: unlimited."),
    at_once: int = typer.Option(128, "--at-once", metavar="N", min=1, help="Concurrent requests."),
    max_body: int = typer.Option(4, "--max-body", metavar="MB", min=1, help="Largest request."),
    max_values: int = typer.Option(20_000, "--max-values", metavar="N", min=1000, help="JSON values of a request."),
    max_import: int = typer.Option(1024, "--max-import", metavar="MB", min=1, help="Largest file to import."),
    scorers: Path | None = typer.Option(
        None, "--scorers", metavar="FOLDER", help="Folder for scorers that clients tune."
    ),
) -> None:
    """Serve this memory over HTTP to clients with a key.

    Without a key file it accepts only local connections. /openapi.json describes the API. Ctrl-C and SIGTERM stop it
    after running requests are answered.

    \b
    Examples:
      zettel serve
      zettel keys create laptop --user ann
      zettel serve --host 0.0.0.0 --certfile cert.pem --keyfile key.pem
    """
    from zettel.remote.sockets import listening
    from zettel.server.keys import keys_file
    from zettel.server.serving import DEFAULT_PORT, Safety, logged, require_safe, require_server

    options = common(ctx)
    if options.remote:  # every local process could use the key of this process
        raise InvalidInput(f"{options.store} is already a server: pass a file or a Neo4j with --store")
    require_server()
    if (certfile is None) != (keyfile is None):
        raise InvalidInput("--certfile and --keyfile belong together: pass both")
    safety = Safety(certfile, keyfile, behind_proxy)
    keyed = keys is not None or keys_file(options.store).exists()
    require_safe(host, keyed, safety)

    import asyncio

    from zettel.server.limits import Limits
    from zettel.server.serving import address_of, run

    limits = Limits(
        body=max_body * MEGABYTE, values=max_values, upload=max_import * MEGABYTE, rate=rate, at_once=at_once
    )
    with ExitStack() as stack:
        at = stack.enter_context(listening(host, DEFAULT_PORT if port is None else port))
        file = stack.enter_context(opened(options, keys)) if keyed else None
        arguments = options.memory_arguments(create=True, run_llm_jobs=True)
        stack.enter_context(logged())

        def ready() -> None:
            clients = "clients with a key" if keyed else "local programs, without keys"
            notify(f"zettel: serving {options.store} at {address_of(at, safety)} to {clients}")

        asyncio.run(run(options.store, arguments, at, file, limits, safety, scorers, ready))
