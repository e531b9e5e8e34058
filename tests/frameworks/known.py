"""The frameworks that zettel has an adapter for, and the environments that they are tested in."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from zettel import Scope

CHECKOUT = Path(__file__).parents[2]
ANN, BOB = Scope(user="ann"), Scope(user="bob")


class Framework(NamedTuple):
    """Its extra, which is also the name of its page, its example and its tests; the package that is imported; and what
    its example and its page need beside it, to speak with a model."""

    name: str
    package: str
    beside: tuple[str, ...] = ()

    @property
    def tests(self) -> Path:
        return CHECKOUT / "tests" / "frameworks" / f"test_{self.name.replace('-', '_')}.py"

    @property
    def page(self) -> Path:
        return CHECKOUT / "docs" / "how-to" / f"{self.name}.md"

    @property
    def example(self) -> Path:
        return CHECKOUT / "examples" / f"agents_{self.name.replace('-', '_')}.py"

    @property
    def installed(self) -> bool:
        top, _, rest = self.package.partition(".")
        return find_spec(top) is not None and (not rest or find_spec(self.package) is not None)


FRAMEWORKS = (
    Framework("langgraph", "langgraph", ("langchain-openai",)),
    Framework("llamaindex", "llama_index.core", ("llama-index-llms-openai",)),
    Framework("crewai", "crewai"),
    Framework("autogen", "autogen_core", ("autogen-agentchat", "autogen-ext[openai]")),
    Framework("openai-agents", "agents"),
    Framework("pydantic-ai", "pydantic_ai", ("pydantic-ai-slim[openai]",)),
    Framework("adk", "google.adk"),
)


class Environment(NamedTuple):
    """What is installed together: frameworks by name, each at its ``lowest`` version or else at the newest.

    ``more`` are further requirements, that have the newest of them all fit together.
    """

    frameworks: tuple[str, ...]
    lowest: bool = False
    more: tuple[str, ...] = ()


ENVIRONMENTS = {
    "newest": Environment(("langgraph", "llamaindex")),
    "lowest": Environment(("langgraph", "llamaindex"), lowest=True),
    "agents-newest": Environment(("autogen", "openai-agents", "pydantic-ai", "adk")),
    "agents-lowest": Environment(
        ("autogen", "openai-agents", "pydantic-ai", "adk"), lowest=True, more=("litellm<1.84",)
    ),  # newer ones of LiteLLM need a newer mcp than that of openai-agents
    "crewai-newest": Environment(("crewai",)),
    "crewai-lowest": Environment(("crewai",), lowest=True),
}
"""Not one for all: what some of them need excludes what others need."""
