"""The commands ``zettel webhooks``: secrets and tests of targets."""

from __future__ import annotations

from pathlib import Path

import typer

from .common import EVERYWHERE, common, echo, notify, print_json

app = typer.Typer(help="Create secrets for webhooks, and test their targets.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Create secrets for the targets of zettel serve --webhooks, and send test messages to them."""


@app.command(epilog=EVERYWHERE)
def secret(ctx: typer.Context) -> None:
    """Print a new secret for one target. Write it into the file of webhooks, and give it to the receiver.

    \b
    Examples:
      zettel webhooks secret
    """
    from zettel.local.webhook_targets import new_secret

    made = new_secret()
    print_json({"secret": made}) if common(ctx).json else echo(made)


@app.command("test", epilog=EVERYWHERE)
def send(
    ctx: typer.Context,
    target: str = typer.Argument(metavar="TARGET", help="Name of the target in the file."),
    webhooks: Path = typer.Option(..., "--webhooks", metavar="FILE", help="YAML file with the targets."),
) -> None:
    """Send a message of type webhook.test to a target. Exits with 1 unless it answers with a status of 200 to 299.

    \b
    Examples:
      zettel webhooks test crm --webhooks webhooks.yaml
    """
    import asyncio

    from zettel.local.webhooks import DeliveryFailed, send_test

    problem = None
    try:
        asyncio.run(send_test(webhooks, target))
    except DeliveryFailed as error:
        problem = str(error)
    if common(ctx).json:
        print_json({"target": target, "accepted": problem is None, "problem": problem})
    elif problem is None:
        echo(f"{target} accepted the message")
    else:
        notify(f"zettel: {target} did not accept the message: {problem}")
    if problem is not None:
        raise typer.Exit(1)
