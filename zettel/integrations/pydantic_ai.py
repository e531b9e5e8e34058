"""Toolset for Pydantic AI: memory tools, and the core memory as instructions."""

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

from zettel.integrations.core_memory import CORE_TOKENS, acore
from zettel.integrations.run_scope import RunScope, ScopedTools, ScopeOfRun, user_field
from zettel.integrations.sync_or_async import AnyMemory
from zettel.model import Scope

RETRIES = 1
"""Retries of a call with invalid JSON: Pydantic AI's default for an agent's own tools."""
ANY_OBJECT = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))
"""Accepts any JSON object: the tools validate arguments themselves and return errors that a model can act upon."""


class ZettelToolset(AbstractToolset[AgentDepsT]):  # type: ignore[misc]
    """The tools of a ``Memory`` or ``AsyncMemory``: ``Agent(..., toolsets=[this])``, or for one run.

    If the ``deps`` of a run have a field ``user_id``, it is the user of the scope. ``scope`` is the scope without that
    user, the scope of one user, or a function that takes the ``RunContext``. Deps with an empty ``user_id``, or with
    another user than the scope, raise ``InvalidInput`` in the run.

    ``session`` is the session of added events; ``read_only`` leaves out the tools that change the memory. The agent's
    instructions contain the core memory in at most ``core_tokens``; 0 leaves it out. A model may retry a call with
    invalid JSON ``max_retries`` times. ``id`` names the toolset if an agent has several. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: ScopeOfRun | None = None,
        session: str | None = None,
        read_only: bool = False,
        core_tokens: int = CORE_TOKENS,
        max_retries: int = RETRIES,
        id: str | None = None,
    ) -> None:
        if core_tokens < 0:
            raise InvalidInput(f"core_tokens={core_tokens}: use 0 or more")
        self._scope = RunScope.for_memory(memory, scope)
        self._tools = ScopedTools(memory, read_only=read_only)
        self._memory = memory
        self._session = session
        self._core_tokens = core_tokens
        self._max_retries = max_retries
        self._id = id

    @property
    def id(self) -> str | None:
        """The name of the toolset."""
        return self._id

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return the tools by name."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
                ),
                max_retries=self._max_retries,
                args_validator=ANY_OBJECT,
            )
            for tool in self._tools.tools
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> dict[str, Any]:
        """Return the tool's answer. An error is returned as ``{"error": …}``, so that it does not end the run."""
        return await self._tools.of(self._scope_of(ctx), self._session).acall(name, tool_args)

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> str | None:
        """Return the current core memory; called before each request to the model."""
        if not self._core_tokens:
            return None
        return await acore(self._memory, self._core_tokens, scope=self._scope_of(ctx)) or None

    def _scope_of(self, ctx: RunContext[AgentDepsT]) -> Scope:
        return self._scope.of(ctx, user_field(ctx.deps, "deps"))
