"""The command serve: the HTTP server."""

from __future__ import annotations

import os
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
    certfile: Path | None = typer.Option(None, "--certfile", metavar="FILE", help="The certificate for HTTPS."),
    keyfile: Path | None = typer.Option(None, "--keyfile", metavar="FILE", help="The private key of the certificate."),
    behind_proxy: str | None = typer.Option(
        None, "--behind-proxy", metavar="ADDRESS", help="Address of a proxy that terminates TLS; it is trusted."
    ),
    rate: float = typer.Option(
        100, "--rate", metavar="N", min=0, help="Requests per second of one key; 0 for no limit."
    ),
    at_once: int = typer.Option(128, "--at-once", metavar="N", min=1, help="Concurrent requests."),
    max_body: int = typer.Option(4, "--max-body", metavar="MB", min=1, help="Largest request."),
    max_values: int = typer.Option(20_000, "--max-values", metavar="N", min=1000, help="JSON values of a request."),
    max_import: int = typer.Option(1024, "--max-import", metavar="MB", min=1, help="Largest file to import."),
    workers: int = typer.Option(1, "--workers", metavar="N", min=1, help="Server processes; at most one per core."),
    scorers: Path | None = typer.Option(
        None, "--scorers", metavar="FOLDER", help="Folder for scorers that clients tune."
    ),
    audit: Path | None = typer.Option(
        None, "--audit", metavar="FILE", help="Append every operation and refused request to this audit log."
    ),
    webhooks: Path | None = typer.Option(
        None, "--webhooks", metavar="FILE", help="YAML file with targets to inform of changes."
    ),
    otel: bool = typer.Option(False, "--otel", help="Send traces and metrics by OTLP; OTEL_… variables set it up."),
    proxy: str | None = typer.Option(
        None, "--proxy", metavar="URL", help="A model such as https://api.openai.com/v1; ZETTEL_PROXY_KEY is its key."
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
      zettel serve --audit audit.jsonl --webhooks webhooks.yaml
      zettel serve --user ann --proxy https://api.openai.com/v1
    """
    from zettel.remote.sockets import listening, reserved
    from zettel.server.keys import keys_file
    from zettel.server.serving import DEFAULT_PORT, Safety, logged, require_safe, require_server

    options = common(ctx)
    if options.remote:  # every local process could use the key of this process
        raise InvalidInput(f"{options.store} is already a server: pass a file or a Neo4j with --store")
    require_server()
    if (certfile is None) != (keyfile is None):
        raise InvalidInput("--certfile and --keyfile belong together: pass both")
    if workers > 1 and (audit or webhooks or proxy):
        raise InvalidInput("--audit, --webhooks and --proxy need a single process: omit --workers")
    safety = Safety(certfile, keyfile, behind_proxy)
    keyed = keys is not None or keys_file(options.store).exists()
    require_safe(host, keyed, safety)

    import asyncio

    from zettel.integrations.proxied_chats import ProxiedChats
    from zettel.server.limits import Limits
    from zettel.server.proxy import PROXY_KEY, Proxy
    from zettel.server.serving import ServerArguments, address_of, run
    from zettel.server.workers import run_workers

    limits = Limits(
        body=max_body * MEGABYTE, values=max_values, upload=max_import * MEGABYTE, rate=rate, at_once=at_once
    )
    proxy_key = os.environ.get(PROXY_KEY, "").strip() or None
    upstream = None if proxy is None else Proxy(proxy, proxy_key, ProxiedChats())
    with ExitStack() as stack:
        listen = listening if workers == 1 else reserved
        at = stack.enter_context(listen(host, DEFAULT_PORT if port is None else port))
        key_file = None
        if keyed:
            with opened(options, keys) as file:
                key_file = file.path
        opening = options.memory_arguments(create=True, run_llm_jobs=True) | {"webhooks": webhooks}
        arguments = ServerArguments(options.store, opening, key_file, limits, safety, scorers, audit, otel)
        stack.enter_context(logged())

        def ready() -> None:
            clients = "clients with a key" if keyed else "local programs, without keys"
            notify(f"zettel: serving {options.store} at {address_of(at, safety)} to {clients}")
            if upstream is not None:
                key = f"the key in {PROXY_KEY}" if proxy_key else f"no key, because {PROXY_KEY} is not set"
                notify(f"zettel: chat completions go to {upstream.url} with {key}")

        if workers > 1:
            run_workers(workers, at, arguments, ready)
        else:
            asyncio.run(run(arguments, at, ready, upstream))
