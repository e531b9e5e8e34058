"""The commands ``zettel keys``: keys of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from zettel.errors import InvalidInput

from .common import EVERYWHERE, UNITS, Common, common, console, day_and_time, echo, notify, print_json, seconds_of

if TYPE_CHECKING:
    from zettel.model import Scope
    from zettel.remote.routes import Right
    from zettel.server.keys import Key, Keys

app = typer.Typer(help="Create and revoke the keys of a server.", rich_markup_mode=None)

KEYS_FILE = typer.Option(
    None, "--keys", metavar="FILE",
    help="The key file; by default beside the store, or in your config folder if the store is on a server.",
)  # fmt: skip


@app.callback()
def group() -> None:
    """Create and revoke the keys of zettel serve. The key file contains hashes, not the keys."""


@app.command(epilog=EVERYWHERE)
def create(
    ctx: typer.Context,
    name: str = typer.Argument(metavar="NAME", help="Name of the key in lists and logs."),
    rights: str = typer.Option("write", "--rights", help="read, write (reversible changes), or admin (everything)."),
    scope: list[str] = typer.Option(
        [], "--scope", metavar="PARTS", help="A scope that the key opens, such as tenant=acme,user=ann. Repeatable."
    ),
    all_scopes: bool = typer.Option(False, "--all-scopes", help="The key opens every scope."),
    reads: list[str] = typer.Option(
        [], "--reads", metavar="PARTS", help="A further scope that it may only read, such as tenant=acme. Repeatable."
    ),
    expires: str | None = typer.Option(None, "--expires", metavar="WHEN", help="A period such as 90d, or a time."),
    trust: float = typer.Option(1.0, "--trust", min=0, max=1, help="Highest trust in what this key writes, 0 to 1."),
    keys: Path | None = KEYS_FILE,
) -> None:
    """Create a key. It is printed only once, because only its hash is stored.

    It opens the scope of --tenant, --user and --agent, the scopes of --scope, or all scopes, and those of --reads for
    reading alone. A part * is any value: tenant=acme,user=* is every user of acme.

    \b
    Examples:
      zettel keys create laptop --user ann
      zettel keys create dashboard --rights read --scope tenant=acme,user=ann --scope tenant=acme,user=bob
      zettel keys create operator --rights admin --all-scopes --expires 90d
      zettel keys create web-form --user ann --trust 0.5
      zettel keys create ann --scope tenant=acme,user=ann --reads tenant=acme
    """
    from zettel.core.scope_patterns import pattern_of

    options = common(ctx)
    scopes = _scopes(options, scope, all_scopes)
    readable = [pattern_of("--reads", text) for text in reads]
    if scopes is None and readable:
        raise InvalidInput("--all-scopes opens every scope: leave --reads out")
    expiry = None if expires is None else _moment(expires)
    with opened(options, keys, create=True) as file:
        is_first, path = not file.all(), file.path
        key, text = file.create(name, cast("Right", rights), scopes, expiry, trust, readable)
    if keys is None and "://" not in options.store and not Path(options.store).exists():
        notify(f"zettel: the store {options.store} does not exist yet; the key will open it once it does")
    if is_first:
        notify("zettel: restart a server that runs without keys: until then it does not require one")
    if options.json:
        print_json(_fields(key) | {"key": text})
        return
    notify(f"zettel: {key.name} may {key.right} in {_where(key)}; the key is shown only once, {path} stores its hash")
    echo(text)


@app.command("list", epilog=EVERYWHERE)
def list_(ctx: typer.Context, keys: Path | None = KEYS_FILE) -> None:
    """List all keys, including expired and revoked ones, with their rights, scopes and last four characters.

    \b
    Examples:
      zettel keys list
    """
    options = common(ctx)
    with opened(options, keys) as file:
        all_keys = file.all()
    if options.json:
        print_json([_fields(key) for key in all_keys])
        return
    from rich.table import Table

    names = ("id", "name", "key", "rights", "scopes", "trust", "created", "expires", "state")
    table = Table(*names, box=None, pad_edge=False)
    now = datetime.now(timezone.utc)
    for key in all_keys:
        dates = (day_and_time(key.created), day_and_time(key.expires))
        trust = f"{key.trust:g}"
        table.add_row(key.id, key.name, f"…{key.tail}", key.right, _where(key), trust, *dates, key.state(now))
    console().print(table)


@app.command(epilog=EVERYWHERE)
def revoke(
    ctx: typer.Context,
    which: str = typer.Argument(metavar="KEY", help="Id or name of the key."),
    keys: Path | None = KEYS_FILE,
) -> None:
    """Revoke a key. A running server refuses it from the next request on.

    \b
    Examples:
      zettel keys revoke laptop
    """
    options = common(ctx)
    with opened(options, keys) as file:
        key = file.revoke(which)
    if options.json:
        print_json(_fields(key))
    else:
        echo(f"{key.name} ({key.id}) is revoked")


@contextmanager
def opened(options: Common, path: Path | None, *, create: bool = False) -> Iterator[Keys]:
    """Open the named key file, or that of the store."""
    from zettel.server.keys import Keys, keys_file

    if path is None and options.remote:
        raise InvalidInput(f"{options.store} is a server: manage its keys where it runs, with its own --store")
    path = path or keys_file(options.store)
    if create and not path.parent.is_dir():
        path.parent.mkdir(parents=True, mode=0o700)
    file = Keys(path, create=create)
    try:
        yield file
    finally:
        file.close()


def _scopes(options: Common, named: Sequence[str], every: bool) -> list[Scope] | None:
    if every:
        if named or options.scoped:
            raise InvalidInput("--all-scopes opens every scope: leave --scope, --tenant, --user and --agent out")
        return None
    if not named:
        return [options.scope()]
    if options.scoped:
        raise InvalidInput("--scope cannot be combined with --tenant, --user and --agent: use one of the two")
    from zettel.core.scope_patterns import pattern_of

    return [pattern_of("--scope", text) for text in named]


def _moment(text: str) -> datetime:
    if text[-1:] in UNITS and text[:-1].isdecimal():
        return datetime.now(timezone.utc) + timedelta(seconds=seconds_of(text, "--expires"))
    from zettel.core.arguments import moment_of

    moment = moment_of("--expires", text)
    assert moment is not None
    return moment


def _where(key: Key) -> str:
    if key.scopes is None:
        return "every scope"
    reads = [f"{scope} (read)" for scope in key.reads]
    return "; ".join([*map(str, key.scopes), *reads])


def _fields(key: Key) -> dict[str, Any]:
    return key._asdict() | {"state": key.state(datetime.now(timezone.utc))}
