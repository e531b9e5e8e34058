"""The commands encrypt and decrypt: copies of a store with and without a key."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from zettel.errors import InvalidInput

from .common import common, notify


def encrypt(
    ctx: typer.Context, to: Path = typer.Argument(metavar="FILE", help="The new file, which must not exist yet.")
) -> None:
    """Copy the store into a new, encrypted file.

    ZETTEL_STORE_KEY is its key. The copy appears when it is complete, and the store does not change: delete it after
    you have searched the copy.

    \b
    Examples:
      read -rs ZETTEL_STORE_KEY && export ZETTEL_STORE_KEY
      zettel encrypt private.db --store zettel.db
    """
    _copy(ctx, to, encrypted=True)


def decrypt(
    ctx: typer.Context, to: Path = typer.Argument(metavar="FILE", help="The new file, which must not exist yet.")
) -> None:
    """Copy an encrypted store into a new plain file.

    ZETTEL_STORE_KEY is the key of the store, which stays as it is.

    \b
    Examples:
      zettel decrypt plain.db --store private.db
    """
    _copy(ctx, to, encrypted=False)


def _copy(ctx: typer.Context, to: Path, *, encrypted: bool) -> None:
    from zettel.graph import STORE_KEY
    from zettel.graph.embedded.encryption import copy_store

    options = common(ctx)
    if "://" in options.store:
        raise InvalidInput(f"{options.store} is not a file: only files can be encrypted")
    key = os.environ.get(STORE_KEY)
    if not key:
        raise InvalidInput(f"set the key in the variable {STORE_KEY}: other users of the machine can see options")
    old_key, new_key = (None, key) if encrypted else (key, None)
    copy_store(Path(options.store), to, old_key, new_key)
    notify(f"{to} is a{'n encrypted' if encrypted else ' plain'} copy of {options.store}, which is unchanged")
