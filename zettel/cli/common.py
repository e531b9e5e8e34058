"""What all commands share: which store, whose memory, and in what form to answer."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from rich.console import Console

    from zettel import Decay, Memory
    from zettel.llm.budget import Budget
    from zettel.model import Scope

DEFAULT_STORE = "zettel.db"

VALUED = ("--store", "--tenant", "--user", "--agent", "--embedder", "--llm", "--budget")
"""Options that every command has and that take a value."""

KEY = "ZETTEL_KEY"
"""Where the key of a zettel server stands, which is no option: others see the arguments of a process."""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
"""Seconds in what a period is told in."""
LONGEST_DAYS = 36_500
"""Of a period: dates end somewhere."""

MEASURING = (["bench"], ["scorer"])
"""Groups of commands whose ``--json`` names a file,"""
ANSWERING = (["bench", "all"], ["scorer", "export"], ["scorer", "slots"])
"""but for these of them."""

EVERYWHERE = (
    "Every command also takes --store PLACE (or ZETTEL_STORE), --tenant, --user and --agent NAME, "
    "--embedder NAME (or ZETTEL_EMBEDDER), --llm NAME (or ZETTEL_LLM), --budget LIMITS (or ZETTEL_BUDGET) and --json."
)
"""Below the help of every command."""


@dataclass(frozen=True)
class Common:
    """The options of every command."""

    store: str
    store_named: bool
    """Whether ``--store`` was given."""
    tenant: str | None
    user: str | None
    agent: str | None
    embedder: str | None
    llm: str | None
    budget: str | None
    json: bool

    @property
    def scoped(self) -> bool:
        """Whether the caller named a scope."""
        return any(part is not None for part in (self.tenant, self.user, self.agent))

    @property
    def remote(self) -> bool:
        """Whether the store is kept by a zettel server, which is asked with a key."""
        return self.store.startswith(("http://", "https://"))

    def scope(self) -> Scope:
        """Whose memory it is; the default one if no part was named."""
        from zettel.model import Scope

        return Scope(tenant=self.tenant, user=self.user, agent=self.agent)

    @property
    def models(self) -> list[str]:
        """The language models that were named, in the order in which they are asked."""
        return [name.strip() for name in (self.llm or "").split(",") if name.strip()]

    @contextmanager
    def memory(self, *, create: bool = False, works: bool = False, **how: Any) -> Iterator[Memory]:
        """The store, open: see ``opening``."""
        made = self.opening(create=create, works=works, **how)
        from zettel import Memory

        with Memory(self.store, **made) as memory:
            yield memory

    def opening(
        self,
        *,
        create: bool = False,
        works: bool = False,
        auth: tuple[str, str] | None = None,
        decay: str | None = None,
        runner: str | None = None,
    ) -> dict[str, Any]:
        """What a memory of the store is opened with. A missing one is only made by commands that put something in.

        A language model is only asked by commands that ``work`` off jobs: no look at a memory may cost money, and what
        is added waits for a worker.
        ``decay`` is the age from which what has faded is put away, such as 90d.
        ``runner`` is where jobs are done, if not here.
        ``auth`` is a Neo4j server's (user, password), by default NEO4J_USERNAME and NEO4J_PASSWORD of the environment.
        """
        if "://" not in self.store and not create and not Path(self.store).exists():
            raise StoreError(f"there is no store {self.store}: add or import makes one, --store names another")
        budget = self._budget()  # one that is none is told also where nothing is asked of a model
        if works and self.budget and not self.models:
            raise InvalidInput("--budget bounds what a language model costs: name one with --llm")
        return {
            "llm": self.models or None, "budget": budget if self.models else None, "asks": works,
            "scope": self.scope(), "embedder": self.embedder, "auth": auth, "decay": decay_of(decay), "runner": runner,
            "key": (os.environ.get(KEY) or None) if self.remote else None,
        }  # fmt: skip

    def _budget(self) -> Budget | None:
        if not self.budget:
            return None
        from zettel.llm.budget import Budget

        limits = key_values([part.strip() for part in self.budget.split(",")], "--budget")
        known = [field.name for field in fields(Budget)]
        for name in limits:
            if name not in known:
                raise InvalidInput(f"--budget: there is no limit {name!r}; there are {', '.join(known)}")
        return Budget(**limits)


def decay_of(age: str | None) -> Decay | None:
    """The policy that puts away what has faded and is of this age. Raises ``InvalidInput``."""
    if age is None:
        return None
    from zettel.evolve.decay import Decay

    return Decay(timedelta(seconds=seconds_of(age, "--decay")))


def seconds_of(period: str, option: str) -> float:
    """A period such as 24h, 90m, 30s or 7d in seconds. Raises ``InvalidInput``."""
    number, unit = period[:-1], period[-1:]
    if not number.isdecimal() or unit not in UNITS or not int(number):
        raise InvalidInput(f"{option} {period!r}: expected a number and one of {', '.join(UNITS)}, such as 24h")
    seconds = int(number) * UNITS[unit]
    if seconds > LONGEST_DAYS * UNITS["d"]:
        raise InvalidInput(f"{option} {period!r}: expected no more than {LONGEST_DAYS}d")
    return float(seconds)


def common(ctx: typer.Context) -> Common:
    """The common options of this run."""
    options = ctx.obj
    assert isinstance(options, Common)
    return options


def hoist(arguments: Sequence[str]) -> list[str]:
    """Common options moved to the front, so that they may stand before or after the command.

    What follows ``--`` stays where it is, and so does ``--json`` where it takes a file.
    """
    front: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            rest += ["--", *waiting]
            break
        if argument in VALUED:
            front += [argument, *waiting[:1]]
            del waiting[:1]
        elif argument.partition("=")[0] in VALUED or (
            argument == "--json" and (rest[:1] not in MEASURING or rest[:2] in ANSWERING)
        ):
            front.append(argument)
        else:
            rest.append(argument)
    return front + rest


def console(*, stderr: bool = False) -> Console:
    """Where tables go; plain text when it is no terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def say(text: str) -> None:
    """A line of the answer, on stdout."""
    typer.echo(text)


def remark(text: str) -> None:
    """A line beside the answer, on stderr."""
    typer.echo(text, err=True)


def say_json(value: Any) -> None:
    """The answer as JSON; pydantic models as they dump themselves. Where stdout is not UTF-8 it is escaped to ASCII."""
    unicode = codecs.lookup(sys.stdout.encoding).name == "utf-8"
    say(json.dumps(plain(value), indent=2, ensure_ascii=not unicode))


def plain(value: Any) -> Any:
    """A value in JSON's own types."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def day_and_time(moment: Any) -> str:
    """A date as people read it, to the minute, in UTC; empty for None."""
    return moment.strftime("%Y-%m-%d %H:%M") if moment is not None else ""


def key_values(given: Sequence[str] | None, option: str) -> dict[str, Any]:
    """``name=value`` pairs as metadata; a value that is JSON is read as such, any other is text. A name comes once."""
    pairs: dict[str, Any] = {}
    for pair in given or ():
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise InvalidInput(f"{option} {pair!r}: expected NAME=VALUE")
        if name in pairs:
            raise InvalidInput(f"{option} {pair!r}: {name} has a value already; give it one")
        try:
            pairs[name] = json.loads(value)
        except ValueError:
            pairs[name] = value
    return pairs


def writable(path: Path) -> None:
    """Look whether a file can be made at a path, before the work that fills it.

    Raises ``InvalidInput``, also where a store would be overwritten.
    """
    from zettel.exports import require_replaceable

    require_replaceable(path)
