"""Strands Agents | Give each user a memory store, and use tools that find the user of each call.

pip install 'zettel-graph[strands]' 'strands-agents[openai]'
export OPENAI_API_KEY=...
python examples/agents_strands.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from strands import Agent
from strands.memory import MemoryManager
from strands.models.openai import OpenAIModel

from zettel import Memory, Scope
from zettel.integrations.strands import ZettelMemoryStore, memory_tools

MODEL = OpenAIModel(model_id=sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini", stream=False)


def agent_of(user, memory):
    """An agent of Strands is one conversation, so each conversation has an agent with the store of its user."""
    store = ZettelMemoryStore(memory, scope=Scope(user=user))
    return Agent(model=MODEL, memory_manager=MemoryManager([store], search_tool_config=False), callback_handler=None)


with Memory(":memory:") as memory:
    for text in ("I am allergic to walnuts.", "What am I allergic to?"):
        print(f"ann: {text}\n  {agent_of('ann', memory)(text)}".strip())

    tools = memory_tools(memory)  # the same tools for everybody
    for user in ("ann", "bob"):
        agent = Agent(model=MODEL, tools=tools, callback_handler=None)
        print(f"{user}: {agent('Who is allergic to walnuts?', invocation_state={'user_id': user})}".strip())
