"""Which runner a caller means."""

from __future__ import annotations

from typing import TypeAlias

from zettel.errors import InvalidInput
from zettel.ports import Runner

RunnerSpec: TypeAlias = "str | Runner | None"

ENTRY_POINTS = "zettel.runners"
"""The group under which other packages announce runners by name."""


def load_runner(spec: RunnerSpec) -> Runner | None:
    """The runner that ``spec`` names; None for the process itself:

    * None or ``"here"``: that;
    * ``"process"``: one of its own on this machine; ``"process:N"``: for N batches at once, see ``ProcessRunner``;
    * ``"ray"``: a Ray that is started on this machine; ``"ray:ADDRESS"``: the cluster there, see ``RayRunner``;
    * an object with ``do``: itself;
    * a name that another package announced in the entry point group ``zettel.runners``: what it stands for, called
      without arguments, or for ``"NAME:REST"`` with REST.

    Raises ``InvalidInput`` for anything else.
    """
    if spec in (None, "here"):
        return None
    if not isinstance(spec, str):
        if isinstance(spec, type) or not callable(getattr(spec, "do", None)):
            raise InvalidInput(f"runner={spec!r} is no runner: see zettel.ports.Runner")
        return spec
    name, colon, rest = spec.partition(":")
    if name == "ray":
        from zettel.jobs.on_ray import RayRunner

        return RayRunner(rest or None)
    if name == "process":
        from zettel.jobs.on_processes import ProcessRunner

        if colon and not rest.isdecimal():
            raise InvalidInput(f"runner={spec!r}: after process: stands how many, as in process:2")
        return ProcessRunner(int(rest or 1))
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        made: Runner = entry.load()(rest) if colon else entry.load()()
        return made
    raise InvalidInput(f"there is no runner {spec!r}: there are here, process, process:N, ray and ray:ADDRESS")
