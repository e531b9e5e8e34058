"""All jobs of this version: ``JOB`` of the module ``zettel.jobs.KIND_job`` of each ``JobKind``."""

from __future__ import annotations

from importlib import import_module

from zettel.jobs.spec import JobSpec
from zettel.model import JobKind

JOBS: tuple[JobSpec, ...] = tuple(import_module(f"{__package__}.{kind.value}_job").JOB for kind in JobKind)
