"""``zettel keys``: who may ask a server, and for what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from zettel.errors import InvalidInput

from .common import EVERYWHERE, UNITS, Common, common, console, day_and_time, remark, say, say_json, seconds_of

if TYPE_CHECKING:
    from zettel.model import Scope
    from zettel.server.keys import Key, Keys, Right

PARTS = ("tenant", "user", "agent")

app = typer.Typer(help="Make and revoke the keys of a server.", rich_markup_mode=None)

KEYS_FILE = typer.Option(
    None, "--keys", metavar="FILE",
    help="The file of keys; by default beside the store, or for a server's in your config folder.",
)  # fmt: skip


@app.callback()
def group() -> None:
    """Make and revoke the keys of zettel serve. What a file of keys holds are their hashes, not the keys."""


@app.command(epilog=EVERYWHERE)
def create(
    ctx: typer.Context,
    name: str = typer.Argument(metavar="NAME", help="What to call it, in lists and logs."),
    rights: str = typer.Option("write", "--rights", help="read, write (what can be taken back), or admin (all)."),
    scope: list[str] = typer.Option(
        [], "--scope", metavar="PARTS", help="A scope it opens, as tenant=acme,user=ann. Repeatable."
    ),
    all_scopes: bool = typer.Option(False, "--all-scopes", help="It opens every scope."),
    expires: str | None = typer.Option(None, "--expires", metavar="WHEN", help="A period such as 90d, or a time."),
    keys: Path | None = KEYS_FILE,
) -> None:
    """Make a key. It is shown this once: what is kept is its hash.

    It opens one scope, which --tenant, --user and --agent name, or those of --scope, or all.

    \b
    Examples:
      zettel keys create laptop --user ann
      zettel keys create dashboard --rights read --scope tenant=acme,user=ann --scope tenant=acme,user=bob
      zettel keys create operator --rights admin --all-scopes --expires 90d
    """
    options = common(ctx)
    scopes = _scopes(options, scope, all_scopes)
    ends = None if expires is None else _moment(expires)
    with opened(options, keys, create=True) as file:
        first, place = not file.all(), file.path
        key, text = file.create(name, cast("Right", rights), scopes, ends)
    if keys is None and "://" not in options.store and not Path(options.store).exists():
        remark(f"zettel: there is no store {options.store} yet, whose keys these are")
    if first:
        remark("zettel: a server that is running without keys has to be restarted: until then it asks for none")
    if options.json:
        say_json(_told(key) | {"key": text})
        return
    remark(f"zettel: {key.name} may {key.right} in {_where(key)}; the key is shown this once, {place} has its hash")
    say(text)


@app.command("list", epilog=EVERYWHERE)
def list_(ctx: typer.Context, keys: Path | None = KEYS_FILE) -> None:
    """All keys there ever were: what each may do and where, and its last four characters.

    \b
    Example:
      zettel keys list
    """
    options = common(ctx)
    with opened(options, keys) as file:
        found = file.all()
    if options.json:
        say_json([_told(key) for key in found])
        return
    from rich.table import Table

    table = Table("id", "name", "key", "may", "in", "made", "expires", "state", box=None, pad_edge=False)
    now = datetime.now(timezone.utc)
    for key in found:
        dates = (day_and_time(key.created), day_and_time(key.expires))
        table.add_row(key.id, key.name, f"…{key.tail}", key.right, _where(key), *dates, key.state(now))
    console().print(table)


@app.command(epilog=EVERYWHERE)
def revoke(
    ctx: typer.Context,
    which: str = typer.Argument(metavar="KEY", help="Its id or its name."),
    keys: Path | None = KEYS_FILE,
) -> None:
    """Have a key open nothing any more, from the next request on, also of a server that runs.

    \b
    Example:
      zettel keys revoke laptop
    """
    options = common(ctx)
    with opened(options, keys) as file:
        key = file.revoke(which)
    if options.json:
        say_json(_told(key))
    else:
        say(f"{key.name} ({key.id}) is revoked")


@contextmanager
def opened(options: Common, path: Path | None, *, create: bool = False) -> Iterator[Keys]:
    """The file of keys that is named, or the store's."""
    from zettel.server.keys import Keys, keys_file

    if path is None and options.remote:
        raise InvalidInput(f"{options.store} has keys of its own: make and revoke them where it runs, with its --store")
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
            raise InvalidInput("--all-scopes opens every scope: name none beside it")
        return None
    if not named:
        return [options.scope()]
    if options.scoped:
        raise InvalidInput("name the scopes by --scope, or one by --tenant, --user and --agent")
    return [_scope(text) for text in named]


def _scope(text: str) -> Scope:
    from zettel.model import Scope

    parts: dict[str, str] = {}
    for pair in text.split(","):
        name, sign, value = pair.partition("=")
        if name not in PARTS or name in parts or not sign or not value:
            raise InvalidInput(f"--scope {text!r}: expected {', '.join(PARTS)}, as tenant=acme,user=ann")
        parts[name] = value
    return Scope(**parts)


def _moment(text: str) -> datetime:
    if text[-1:] in UNITS and text[:-1].isdecimal():
        return datetime.now(timezone.utc) + timedelta(seconds=seconds_of(text, "--expires"))
    from zettel.arguments import moment_of

    found = moment_of("--expires", text)
    assert found is not None
    return found


def _where(key: Key) -> str:
    return "every scope" if key.scopes is None else "; ".join(map(str, key.scopes))


def _told(key: Key) -> dict[str, Any]:
    return key._asdict() | {"state": key.state(datetime.now(timezone.utc))}
