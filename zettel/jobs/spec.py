"""The declaration of a job kind: ``JobSpec``, its ``JobLane``, and the ``JobContext`` for handlers.

To add a job, add its ``JobKind`` and write the module ``KIND_job.py``, which ends with ``JOB = JobSpec(...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from zettel.core.commit import Commits
    from zettel.core.follow_ups import FollowUps, UnfinishedJobs
    from zettel.core.privacy import SecretGuard
    from zettel.core.vectors import Vectors
    from zettel.evolve.entities_by_model import LiteLLMEntityMatcher
    from zettel.evolve.profile_by_model import LiteLLMProfiler
    from zettel.jobs.counters import Counters
    from zettel.model import Job, JobKind, Scope
    from zettel.ports import Annotator, GraphStore
    from zettel.ports.language_model import (
        AskFactory,
        LanguageModel,
        ModelAnnotator,
        ModelEvolver,
        ModelLinker,
        ModelReflector,
    )
    from zettel.ports.settings import DecayPolicy
    from zettel.search.searcher import Searcher

CLAIM = 1024
"""Jobs claimed at once: enough to share reads among them, few enough to finish within the lease."""
READ_AHEAD = 4
"""Batches of a model annotator claimed at once, so that requests can end where topics change."""
LEASE_SECONDS = 30.0
"""Seconds after which another worker may take a claimed batch, for example after a worker is killed. A slow worker
loses only its effort, because every effect is written once."""
LINGER_SECONDS = 0.5
"""Seconds that a background batch waits for more jobs: a job costs far less in a larger batch."""
MODEL_LEASE_SECONDS = 300.0
"""The lease of jobs that call a model: several requests of a minute each."""
MODEL_LINGER_SECONDS = 10.0
"""The linger of annotation: one call for twenty turns costs as much as one for a single turn."""


class Models(NamedTuple):
    """The language model of a memory and the parts that call it; None for each part that is not configured."""

    model: LanguageModel | None = None
    annotator: ModelAnnotator | None = None
    linker: ModelLinker | None = None
    evolver: ModelEvolver | None = None
    reflector: ModelReflector | None = None
    profiler: LiteLLMProfiler | None = None
    matcher: LiteLLMEntityMatcher | None = None


@dataclass(frozen=True)
class JobContext:
    """The parts of a memory that job handlers use; ``models`` are the models that its jobs may call."""

    store: GraphStore
    commits: Commits
    extractive: Annotator
    vectors: Vectors
    follow_ups: FollowUps
    searcher: Searcher
    counters: Counters
    models: Models
    ask_about: AskFactory
    guard: SecretGuard
    decay: DecayPolicy | None = None

    @property
    def model_claim(self) -> int | None:
        """Jobs claimed at once by lanes that call a model; None without a model annotator."""
        annotator = self.models.annotator
        return None if annotator is None else READ_AHEAD * annotator.batch


class JobLane(Enum):
    """Lanes run side by side, and each runs one batch after another, so that a slow model delays only its own lane.

    Without a model annotator all jobs share one lane. ``calls_model``: the lane claims as many jobs as the annotator
    reads ahead.
    """

    LOCAL = ("local",)
    LINK = ("link", True, MODEL_LEASE_SECONDS)
    ANNOTATE = ("annotate", True, MODEL_LEASE_SECONDS, MODEL_LINGER_SECONDS)
    ROUND = ("round",)  # of all jobs with a position in an evolution round

    def __init__(
        self, label: str, calls_model: bool = False, lease: float = LEASE_SECONDS, linger: float = LINGER_SECONDS
    ) -> None:
        self.label = label
        self.calls_model = calls_model
        self.lease = lease
        self.linger = linger


class Pause(NamedTuple):
    """A result of jobs that cannot run yet: queue them again after ``length``, which counts as no attempt."""

    length: timedelta
    reason: str
    """Stored with the jobs, as ``zettel jobs`` shows it."""


class JobHandler(Protocol):
    """Runs the jobs of one kind."""

    async def is_ready(self) -> bool:
        """Return whether these jobs can run now in this memory."""
        return True

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs] | Pause:
        """Run jobs of one scope, and write their effect and their end in one commit.

        Return the jobs that failed and why, or a pause after which to try all of them again.
        """
        ...


@dataclass(frozen=True)
class JobSpec:
    """The declaration of a job kind, in the module of its handler.

    ``make`` returns the handler, or None if this memory cannot run these jobs. ``round``: the position in an evolution
    round, unique among all jobs, or None. Jobs with a position run in the lane ``ROUND``, the others in ``lane``.
    ``quotes_texts``: errors may contain texts of notes, so messages from other libraries are not stored.
    ``store_wide``: the job concerns the whole store and always runs in the memory's own process.
    """

    kind: JobKind
    make: Callable[[JobContext], JobHandler | None]
    lane: JobLane = JobLane.LOCAL
    round: int | None = None
    quotes_texts: bool = False
    store_wide: bool = False
