"""Where a model computes, by the one argument ``device``."""

from __future__ import annotations

from zettel.errors import MissingExtra, ScorerError

KINDS = ("cpu", "cuda", "mps")


def require_torch(feature: str) -> None:
    """Raise ``MissingExtra`` where there is no torch to compute with."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra(feature, "torch") from error


def device_called(device: str | None) -> str:
    """``device`` as torch names it, such as "cuda:1", if this machine has it; None: the fastest that it has.

    Raises ``ScorerError``.
    """
    import torch

    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if device is None:
        return next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    kind, colon, number = device.partition(":")
    if kind not in KINDS or (colon and not number.isdecimal()):
        raise ScorerError(f"device={device!r}: take one of {', '.join(KINDS)}, or none for the fastest that is there")
    if int(number or 0) >= there[kind]:
        raise ScorerError(f"device={device!r} is not on this machine: leave it out for the fastest that is there")
    return device
