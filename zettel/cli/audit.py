"""The commands ``zettel audit``: check and show an audit log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from .common import EVERYWHERE, common, echo, notify, print_json

app = typer.Typer(help="Check and show an audit log.", rich_markup_mode=None)

PATH = typer.Argument(metavar="FILE", help="The file of --audit; its older files FILE.1, FILE.2, … are read too.")
SHOWN_IDS = 3
"""Ids that a row shows; --json prints all."""


@app.callback()
def group() -> None:
    """Check and show the audit log of zettel serve --audit, or of Memory(audit=…)."""


@app.command(epilog=EVERYWHERE)
def verify(
    ctx: typer.Context,
    path: Path = PATH,
    contains: str | None = typer.Option(
        None, "--contains", metavar="HASH", help="A hash from an earlier check, which must still be in the log."
    ),
) -> None:
    """Check the hash of every line. Exits with 1 if lines were changed, removed, added or moved.

    Note the printed hash elsewhere and pass it to --contains later: only this detects a log that was cut at its end, or
    rewritten as a whole.

    \b
    Examples:
      zettel audit verify audit.jsonl
    """
    from zettel.local import audit_log

    options = common(ctx)
    checked = audit_log.verify(path, contains)
    if options.json:
        print_json(checked._asdict())
    elif checked.problem is not None:
        echo(checked.problem)
        echo(f"{checked.lines:,} lines before it are intact")
    else:
        echo(f"{checked.lines:,} lines are intact, the last has the hash {checked.last_hash}")
    if not checked.is_complete:
        notify("zettel: older files of this log are missing: check them where they are archived")
    if checked.problem is not None:
        raise typer.Exit(1)


@app.command(epilog=EVERYWHERE)
def show(
    ctx: typer.Context,
    path: Path = PATH,
    id: str | None = typer.Option(None, "--id", help="Only records with this note, event or job."),
    who: str | None = typer.Option(None, "--who", metavar="NAME", help="Only of this principal, or key name."),
    operation: str | None = typer.Option(None, "--op", metavar="NAME", help="Only of this operation, such as delete."),
    result: str | None = typer.Option(None, "--result", help="Only ok, begun, failed or refused."),
    last: int = typer.Option(100, "--last", metavar="N", min=1, help="The newest N records."),
) -> None:
    """Show records, oldest first. --tenant, --user and --agent select a scope.

    Writes are recorded before and after; the record before is shown only if the operation never ended.

    \b
    Examples:
      zettel audit show audit.jsonl --op delete
      zettel audit show audit.jsonl --id n_3f9a --json
    """
    from zettel.local import audit_log

    options = common(ctx)
    scope = options.scope().model_dump(exclude_none=True) if options.scoped else None

    def fits(record: dict[str, Any]) -> bool:
        ids = [*record.get("ids", ()), *record.get("of", {}).values()]
        return (
            (id is None or id in ids)
            and (who is None or who in (record.get("who"), record.get("name")))
            and (operation is None or record["op"] == operation)
            and (result is None or record.get("result") == result)
            and (scope is None or scope == record.get("scope") or scope in record.get("scopes", ()))
        )

    records = deque(filter(fits, _ended(audit_log.read(path))), last)
    if options.json:
        print_json([*records])
        return
    rows = [(_time(record), _who(record), _operation(record), _scopes(record), _outcome(record)) for record in records]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, record in zip(rows, records, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        echo("  ".join([*cells, _ids(record)]).rstrip())


def _ended(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records without the beginnings of operations whose end is recorded too."""
    open_calls: dict[str, dict[str, Any]] = {}
    for record in records:
        call = record.get("call")
        if record.get("result") == "begun" and call is not None:
            open_calls[call] = record
            continue
        open_calls.pop(call or "", None)
        yield record
    yield from open_calls.values()


def _time(record: dict[str, Any]) -> str:
    return str(record["time"])[:19].replace("T", " ")


def _who(record: dict[str, Any]) -> str:
    return str(record.get("name") or record.get("who") or "-")


def _operation(record: dict[str, Any]) -> str:
    if record["op"] != "http":
        return str(record["op"])
    return f"{record['method']} {record['route'] or 'unknown path'}: {record['status']}"


def _scopes(record: dict[str, Any]) -> str:
    scopes = record.get("scopes", [record["scope"]] if "scope" in record else "")
    return scopes if isinstance(scopes, str) else "; ".join(map(_scope, scopes))


def _scope(scope: dict[str, str]) -> str:
    return ",".join(f"{name}={part}" for name, part in scope.items()) or "default"


def _outcome(record: dict[str, Any]) -> str:
    return str(record.get("error") or record.get("result") or "")


def _ids(record: dict[str, Any]) -> str:
    """Return what an operation concerned, and the first ids that it touched."""
    of, ids, count = record.get("of", {}), record.get("ids", []), record.get("count", 0)
    named = [f"{name}={value}" for name, value in of.items()]
    more = [f"… {count:,} in all"] if count > SHOWN_IDS else [f"count={count:,}"] if count and not ids else []
    return " ".join([*named, *(id for id in ids[:SHOWN_IDS] if id not in of.values()), *more])
