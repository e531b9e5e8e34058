"""The frameworks with a zettel adapter and the environments for their tests."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from zettel import Scope

CHECKOUT = Path(__file__).parents[2]
ANN, BOB = Scope(user="ann"), Scope(user="bob")


class Framework(NamedTuple):
    """A framework.

    ``name`` is its extra and names its page, example and tests; ``package`` is the imported package; ``beside`` are the
    packages that its example and page need to call a model. ``other-frameworks`` has no extra: its page shows
    frameworks that need no adapter.
    """

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
    Framework("strands", "strands", ("strands-agents[openai]",)),
    Framework("agno", "agno", ("openai",)),
    Framework("other-frameworks", "haystack", ("haystack-ai>=3.4", "dspy>=3.4", "smolagents[openai]>=1.26")),
    Framework("agent-framework", "agent_framework", ("agent-framework-openai",)),
    Framework("anthropic", "anthropic"),
)


class Environment(NamedTuple):
    """Frameworks installed together, each at its ``lowest`` or newest supported version.

    ``more`` are further requirements that make these versions compatible.
    """

    frameworks: tuple[str, ...]
    lowest: bool = False
    more: tuple[str, ...] = ()


ENVIRONMENTS = {
    "newest": Environment(("langgraph", "llamaindex")),
    "lowest": Environment(
        ("langgraph", "llamaindex"), lowest=True, more=("langgraph-prebuilt<1.0.6",)
    ),  # newer ones require a newer langgraph
    "agents-newest": Environment(("autogen", "openai-agents", "pydantic-ai", "adk", "anthropic")),
    "agents-lowest": Environment(
        ("autogen", "openai-agents", "pydantic-ai", "adk", "anthropic"), lowest=True, more=("litellm<1.84",)
    ),  # newer LiteLLM requires a newer mcp than openai-agents
    "more-newest": Environment(("strands", "agno", "agent-framework", "other-frameworks")),
    "more-lowest": Environment(("strands", "agno", "agent-framework", "other-frameworks"), lowest=True),
    "crewai-newest": Environment(("crewai",)),
    "crewai-lowest": Environment(("crewai",), lowest=True),
}
"""There are several environments because the requirements of some frameworks conflict."""
