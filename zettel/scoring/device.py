"""Checks that torch is installed and resolves a device name."""

from __future__ import annotations

from zettel.errors import MissingExtra, ScorerError

KINDS = ("cpu", "cuda", "mps")


def require_torch(feature: str) -> None:
    """Raise ``MissingExtra`` if torch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra(feature, "torch") from error


def resolve_device(device: str | None) -> str:
    """Validate a torch device name such as "cuda:1"; None: the fastest device of this machine.

    Raises ``ScorerError`` for an unknown or missing device.
    """
    import torch

    counts = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if device is None:
        return next(kind for kind in ("cuda", "mps", "cpu") if counts[kind])
    kind, colon, number = device.partition(":")
    if kind not in KINDS or (colon and not number.isdecimal()):
        raise ScorerError(f"device={device!r} is unknown: use one of {', '.join(KINDS)}, or leave it out")
    if int(number or 0) >= counts[kind]:
        raise ScorerError(f"device={device!r} is not on this machine: use another, or leave it out for the fastest")
    return device
