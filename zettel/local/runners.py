"""Loads a runner by name."""

from __future__ import annotations

from typing import TypeAlias

from zettel.errors import InvalidInput
from zettel.ports import Runner

RunnerSpec: TypeAlias = "str | Runner | None"

ENTRY_POINTS = "zettel.runners"
"""The entry point group in which other packages register runners by name."""


def load_runner(spec: RunnerSpec) -> Runner | None:
    """Return the runner for ``spec``, or None for the current process:

    * None or ``"here"``: the current process;
    * ``"process"``: a child process; ``"process:N"``: N batches at once, see ``ProcessRunner``;
    * ``"ray"``: a Ray started on this machine; ``"ray:ADDRESS"``: the cluster at ADDRESS, see ``RayRunner``;
    * a ``Runner``: itself;
    * a name in the entry point group ``zettel.runners``: its factory, called without arguments, or with REST for
      ``"NAME:REST"``.

    Raises ``InvalidInput`` for anything else.
    """
    if spec in (None, "here"):
        return None
    if not isinstance(spec, str):
        if isinstance(spec, type) or not isinstance(spec, Runner):
            raise InvalidInput(f"runner must be a name or a zettel.ports.Runner, got {spec!r}")
        return spec
    name, colon, rest = spec.partition(":")
    if name == "ray":
        from zettel.local.ray_runner import RayRunner

        return RayRunner(rest or None)
    if name == "process":
        from zettel.local.process_runner import ProcessRunner

        if colon and not rest.isdecimal():
            raise InvalidInput(f"runner={spec!r}: write the number of processes after the colon, as in process:2")
        return ProcessRunner(int(rest or 1))
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        made: Runner = entry.load()(rest) if colon else entry.load()()
        return made
    raise InvalidInput(f"unknown runner {spec!r}: use here, process, process:N, ray or ray:ADDRESS")
