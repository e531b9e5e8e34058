"""The HTTP server."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import typer

from zettel.errors import InvalidInput

from .common import common, remark
from .keys import KEYS_FILE, opened

MEGABYTE = 2**20


def serve(
    ctx: typer.Context,
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen at."),
    port: int | None = typer.Option(
        None, "--port", min=0, max=65_535, help="8766 unless said otherwise; 0 takes a free one."
    ),
    keys: Path | None = KEYS_FILE,
    certfile: Path | None = typer.Option(None, "--certfile", metavar="FILE", help="The certificate, for HTTPS."),
    keyfile: Path | None = typer.Option(None, "--keyfile", metavar="FILE", help="Its private key."),
    behind_proxy: str | None = typer.Option(
        None, "--behind-proxy", metavar="ADDRESS", help="A proxy at this address encrypts; its headers are believed."
    ),
    rate: float = typer.Option(100, "--rate", metavar="N", min=0, help="Requests a second of one key; 0: any number."),
    at_once: int = typer.Option(128, "--at-once", metavar="N", min=1, help="Requests answered at the same time."),
    max_body: int = typer.Option(16, "--max-body", metavar="MB", min=1, help="Largest request."),
    max_import: int = typer.Option(1024, "--max-import", metavar="MB", min=1, help="Largest file to import."),
    scorers: Path | None = typer.Option(
        None, "--scorers", metavar="FOLDER", help="Where scorers that clients tune are kept."
    ),
) -> None:
    """Serve this memory over HTTP to whoever has a key.

    Without a file of keys it listens on this machine alone. /openapi.json describes it. Ctrl-C and SIGTERM end it:
    what it has begun is answered first.

    \b
    Examples:
      zettel serve
      zettel keys create laptop --user ann
      zettel serve --host 0.0.0.0 --certfile cert.pem --keyfile key.pem
    """
    from zettel.server.keys import keys_file
    from zettel.server.serving import DEFAULT_PORT, Safety, logged, require_safe, require_server
    from zettel.server.sockets import listening

    options = common(ctx)
    if options.remote:  # it would let in whoever is on this machine, with the key that this process has
        raise InvalidInput(f"{options.store} is a server already: name the file or the Neo4j to serve with --store")
    require_server()
    if (certfile is None) != (keyfile is None):
        raise InvalidInput("--certfile and --keyfile belong together: name both")
    safety = Safety(certfile, keyfile, behind_proxy)
    keyed = keys is not None or keys_file(options.store).exists()
    require_safe(host, keyed, safety)

    import asyncio

    from zettel.server.limits import Limits
    from zettel.server.serving import address_of, run

    limits = Limits(body=max_body * MEGABYTE, upload=max_import * MEGABYTE, rate=rate, at_once=at_once)
    with ExitStack() as stack:
        at = stack.enter_context(listening(host, DEFAULT_PORT if port is None else port))
        file = stack.enter_context(opened(options, keys)) if keyed else None
        how = options.opening(create=True, works=True)
        stack.enter_context(logged())

        def ready() -> None:
            who = "whoever has a key" if keyed else "programs of this machine, without keys"
            remark(f"zettel: serving {options.store} at {address_of(at, safety)} to {who}")

        asyncio.run(run(options.store, how, at, file, limits, safety, scorers, ready))
