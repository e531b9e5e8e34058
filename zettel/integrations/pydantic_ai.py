"""Pydantic AI's toolset: the memory's tools for an agent, and what it is always to know as its instructions."""

from __future__ import annotations

from typing import Any

from pydantic_core import SchemaValidator, core_schema

from zettel.errors import InvalidInput, MissingExtra

try:
    from pydantic_ai import RunContext, ToolDefinition
    from pydantic_ai.tools import AgentDepsT
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ModuleNotFoundError as error:
    raise MissingExtra("the toolset for Pydantic AI", "pydantic-ai") from error

from zettel.integrations.core import CORE_TOKENS, acore
from zettel.integrations.either import Either
from zettel.integrations.tools import MemoryTools
from zettel.model import Scope

RETRIES = 1
"""Times that a model may write a call anew whose arguments are not even JSON: as many as of an agent's own tools."""
AS_IT_CAME = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))
"""Takes any JSON object: what is wrong with it the tools say themselves, in words that a model can act upon."""


class ZettelToolset(AbstractToolset[AgentDepsT]):  # type: ignore[misc]
    """The tools of one scope of a ``Memory`` or ``AsyncMemory``: ``Agent(..., toolsets=[this])``, or for one run.

    ``session`` is what is added belongs to; ``read_only`` leaves out the tools that change the memory. At most
    ``core_tokens`` of what is pinned and of the profile stand in the agent's instructions; 0 for none of it. A model
    may write arguments that are no JSON anew ``max_retries`` times. ``id`` names the toolset where an agent has
    several. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: Either,
        *,
        scope: Scope | None = None,
        session: str | None = None,
        read_only: bool = False,
        core_tokens: int = CORE_TOKENS,
        max_retries: int = RETRIES,
        id: str | None = None,
    ) -> None:
        if core_tokens < 0:
            raise InvalidInput(f"core_tokens={core_tokens}: use 0 or more")
        self._tools = MemoryTools(memory, scope=scope, session=session, read_only=read_only)
        self._memory = memory
        self._scope = scope
        self._core_tokens = core_tokens
        self._max_retries = max_retries
        self._id = id

    @property
    def id(self) -> str | None:
        """The name that was given to it."""
        return self._id

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """The tools by name; each call of one is up to ``call_tool``."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
                ),
                max_retries=self._max_retries,
                args_validator=AS_IT_CAME,
            )
            for tool in self._tools
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> dict[str, Any]:
        """The tool's answer. A mistake is one too, ``{"error": …}``, so that no run ends for it."""
        return await self._tools.acall(name, tool_args)

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> str | None:
        """What is always to be known, as it is now: before each request to the model."""
        if not self._core_tokens:
            return None
        return await acore(self._memory, self._core_tokens, scope=self._scope) or None
