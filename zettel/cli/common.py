"""Options and output functions that all commands share."""

from __future__ import annotations

import codecs
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput, NotFound, StoreError

from .terminal import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console

    from zettel import Decay, Memory
    from zettel.llm.budget import Budget
    from zettel.model import Scope

DEFAULT_STORE = "zettel.db"

VALUED = ("--store", "--tenant", "--user", "--agent", "--embedder", "--llm", "--budget", "--privacy")
"""Options with a value that every command has."""

KEY = "ZETTEL_KEY"
"""Environment variable with the key of a zettel server. It is not an option, because others can see arguments."""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
"""Seconds per unit of a period."""
LONGEST_DAYS = 36_500
"""Longest period, so that dates do not overflow."""

NO_MATCH = "no notes match"
SPEAKERS_SHOWN = 10

MAX_SCOPES_TRIED = 1_000
"""Scopes in which a command looks for an id that is not in its own; one takes about a millisecond."""

MEASURING = (["bench"], ["scorer"])
"""Command groups whose ``--json`` takes a file."""
ANSWERING = (["bench", "all"], ["scorer", "export"])
"""Commands in these groups whose ``--json`` is a flag."""

EVERYWHERE = (
    "Every command also takes --store PLACE (or ZETTEL_STORE), --tenant, --user and --agent NAME, "
    "--embedder NAME (or ZETTEL_EMBEDDER), --llm NAME (or ZETTEL_LLM), --budget LIMITS (or ZETTEL_BUDGET), "
    "--privacy MODE (or ZETTEL_PRIVACY) and --json."
)
"""Last line of the help of every command."""


@dataclass(frozen=True)
class Common:
    """The options of every command."""

    store: str
    store_given: bool
    """True if ``--store`` is on the command line."""
    tenant: str | None
    user: str | None
    agent: str | None
    embedder: str | None
    llm: str | None
    budget: str | None
    privacy: str | None
    json: bool

    @property
    def scoped(self) -> bool:
        """True if the caller named a scope."""
        return any(part is not None for part in (self.tenant, self.user, self.agent))

    @property
    def remote(self) -> bool:
        """True if the store is a zettel server."""
        return self.store.startswith(("http://", "https://"))

    def scope(self) -> Scope:
        """Return the scope; the default scope if no part was named."""
        from zettel.model import Scope

        return Scope(tenant=self.tenant, user=self.user, agent=self.agent)

    def why_empty(self, memory: Memory, otherwise: str) -> str:
        """Return a message about an empty answer: that the scope has no notes, or else the given one."""
        has_notes = any(memory.list(archived=archived, limit=1).notes for archived in (False, True))
        return f"zettel: {otherwise}" if has_notes else self.no_notes()

    def why_none_match(self, memory: Memory, speaker: str | None) -> str:
        """Return a message about filters without a match; a speaker without notes may be mistyped."""
        if speaker is None or memory.list(speaker=speaker, limit=1).notes:
            return self.why_empty(memory, NO_MATCH)
        groups = memory.query(group_by="speaker", limit=SPEAKERS_SHOWN).groups
        names = [str(group.key["speaker"]) for group in groups if group.key["speaker"]]
        known = f"; speakers are {', '.join(names)}" if names else ""
        return self.why_empty(memory, f"{NO_MATCH}: no note has the speaker {speaker!r}{known}")

    def no_notes(self) -> str:
        """Return the message about a scope without notes, whose name may be mistyped."""
        return f"zettel: no notes in {self.scope()}: see zettel scopes"

    @property
    def models(self) -> list[str]:
        """The names of the language models, in the order in which they are called."""
        return [name.strip() for name in (self.llm or "").split(",") if name.strip()]

    @contextmanager
    def memory(self, *, create: bool = False, run_llm_jobs: bool = False, **settings: Any) -> Iterator[Memory]:
        """Open the store; the arguments are those of ``memory_arguments``."""
        arguments = self.memory_arguments(create=create, run_llm_jobs=run_llm_jobs, **settings)
        from zettel import Memory

        with Memory(self.store, **arguments) as memory:
            try:
                yield memory
            except NotFound as error:
                if hint := _other_scope(memory, error):
                    raise NotFound(error.scope, error.ids, hint) from None
                raise

    def memory_arguments(
        self,
        *,
        create: bool = False,
        run_llm_jobs: bool = False,
        auth: tuple[str, str] | None = None,
        decay: str | None = None,
        runner: str | None = None,
    ) -> dict[str, Any]:
        """Return the arguments for ``Memory``.

        ``create`` allows a new store; only commands that write set it. ``run_llm_jobs`` lets jobs call the language
        model; commands that only read never cost money, and added events wait for a worker. ``decay`` is the age from
        which decayed notes are archived, such as 90d. ``runner`` names the runner of jobs, by default this process.
        ``auth`` is the (user, password) of a Neo4j server, by default NEO4J_USERNAME and NEO4J_PASSWORD.
        """
        if "://" not in self.store and not create and not Path(self.store).exists():
            raise StoreError(f"there is no store {self.store}: create it with add or import, or pass another --store")
        budget = self.spending_limit()  # report an invalid budget even if no model is called
        if run_llm_jobs and self.budget and not self.models:
            raise InvalidInput("--budget limits the cost of a language model: name one with --llm")
        return {
            "llm": self.models or None, "budget": budget if self.models else None, "run_llm_jobs": run_llm_jobs,
            "scope": self.scope(), "embedder": self.embedder, "auth": auth, "decay": decay_of(decay), "runner": runner,
            "privacy": self.privacy,
            "key": (os.environ.get(KEY) or None) if self.remote else None,
        }  # fmt: skip

    def spending_limit(self) -> Budget | None:
        """Return the limits of ``--budget``; None without the option. Raises ``InvalidInput``."""
        if not self.budget:
            return None
        from zettel.llm.budget import Budget

        limits = key_values([part.strip() for part in self.budget.split(",")], "--budget")
        known = [field.name for field in fields(Budget)]
        for name in limits:
            if name not in known:
                raise InvalidInput(f"--budget: unknown limit {name!r}; use {', '.join(known)}")
        return Budget(**limits)


def _other_scope(memory: Memory, error: NotFound) -> str | None:
    """Return the options for the scope that contains the first unknown id; None if no other scope contains it.

    A server's error names no ids: its scopes may belong to others.
    """
    from zettel.model import Scope

    if not error.ids or not isinstance(error.scope, Scope):
        return None
    for scope in memory.scopes()[:MAX_SCOPES_TRIED]:
        with suppress(NotFound):
            memory.get(str(error.ids[0]), scope=scope)
            parts = scope.model_dump(exclude_none=True)
            options = " ".join(f"--{name} {shlex.quote(part)}" for name, part in parts.items())
            return f"it is in {scope}; {f'pass {options}' if options else 'leave out --tenant, --user and --agent'}"
    return None


def decay_of(age: str | None) -> Decay | None:
    """Return the policy that archives decayed notes of this age. Raises ``InvalidInput``."""
    if age is None:
        return None
    from zettel.evolve.decay import Decay

    return Decay(timedelta(seconds=seconds_of(age, "--decay")))


def seconds_of(period: str, option: str) -> float:
    """Return the seconds of a period such as 24h, 90m, 30s or 7d. Raises ``InvalidInput``."""
    number, unit = period[:-1], period[-1:]
    if not number.isdecimal() or unit not in UNITS or not int(number):
        raise InvalidInput(f"{option} {period!r}: expected a number and one of {', '.join(UNITS)}, such as 24h")
    seconds = int(number) * UNITS[unit]
    if seconds > LONGEST_DAYS * UNITS["d"]:
        raise InvalidInput(f"{option} {period!r}: expected no more than {LONGEST_DAYS}d")
    return float(seconds)


def common(ctx: typer.Context) -> Common:
    """Return the common options of this run."""
    options = ctx.obj
    assert isinstance(options, Common)
    return options


def move_common_options_first(arguments: Sequence[str]) -> list[str]:
    """Move common options to the front, so that they may stand before or after the command.

    Arguments after ``--`` stay where they are, and so does a ``--json`` that takes a file.
    """
    front: list[str] = []
    rest: list[str] = []
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":
            rest += ["--", *remaining]
            break
        if argument in VALUED:
            front += [argument, *remaining[:1]]
            del remaining[:1]
        elif argument.partition("=")[0] in VALUED or (
            argument == "--json" and (rest[:1] not in MEASURING or rest[:2] in ANSWERING)
        ):
            front.append(argument)
        else:
            rest.append(argument)
    return front + rest


def console(*, stderr: bool = False) -> Console:
    """Return a console for tables, which prints control characters of texts as visible ones.

    It prints plain text if the stream is not a terminal.
    """
    from rich.console import Console

    class SafeConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Any]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    return SafeConsole(stderr=stderr, highlight=False)


def echo(text: str) -> None:
    """Print a line of the answer on stdout, with control characters as visible ones."""
    typer.echo(printable(text.replace("\r\n", "\n")))


def notify(text: str) -> None:
    """Print a message on stderr, with control characters as visible ones."""
    typer.echo(printable(text.replace("\r\n", "\n")), err=True)


def print_json(value: Any) -> None:
    """Print the answer as JSON, escaped to ASCII if stdout is not UTF-8."""
    unicode = codecs.lookup(sys.stdout.encoding).name == "utf-8"
    typer.echo(printable_json(plain(value), ascii_only=not unicode))


def plain(value: Any) -> Any:
    """Return a value as plain JSON types."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def day_and_time(moment: Any) -> str:
    """Return a date to the minute, in UTC; empty for None."""
    return moment.strftime("%Y-%m-%d %H:%M") if moment is not None else ""


ROLE_HELP = "user, assistant, system, tool or document."
EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Field values that are not shown."""


def key_values(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Parse ``name=value`` pairs; a value is JSON if it parses, else text. Each name may occur once."""
    pairs: dict[str, Any] = {}
    for pair in texts or ():
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise InvalidInput(f"{option} {pair!r}: expected NAME=VALUE")
        if name in pairs:
            raise InvalidInput(f"{option} {pair!r}: {name} already has a value; give it once")
        try:
            pairs[name] = json.loads(value)
        except ValueError:
            pairs[name] = value
    return pairs


def require_consent(yes: bool, effect: str) -> None:
    """Exit with 1 if nobody can be asked: stdin is not a terminal, and ``yes`` is False. ``effect`` is a sentence."""
    if not yes and not sys.stdin.isatty():
        notify(f"zettel: {effect}: confirm with --yes, because stdin is not a terminal")
        raise typer.Exit(1)


def require_writable(path: Path) -> None:
    """Check that a file can be written at a path, before the work starts.

    Raises ``InvalidInput``, also if the file is a store.
    """
    from zettel.exports import require_replaceable

    require_replaceable(path)
