"""Pydantic AI | Give an agent memory tools, and add the core memory to its instructions.

pip install 'zettel-graph[pydantic-ai]' 'pydantic-ai-slim[openai]'
export OPENAI_API_KEY=...
python examples/agents_pydantic_ai.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

from zettel import Memory, Scope
from zettel.integrations.pydantic_ai import ZettelToolset

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"

agent = Agent(OpenAIChatModel(MODEL), instructions="You have a memory. Use it.")

with Memory(":memory:") as memory:
    hers = ZettelToolset(memory, scope=Scope(user="ann"))  # each run selects its memory
    his = ZettelToolset(memory, scope=Scope(user="ben"), read_only=True)
    for user, toolset, question in [
        ("Ann", hers, "Remember: I am allergic to walnuts."),
        ("Ann", hers, "What am I allergic to?"),
        ("Ben", his, "What am I allergic to?"),
    ]:
        print(f"{user}: {question}\n  {agent.run_sync(question, toolsets=[toolset]).output}")
