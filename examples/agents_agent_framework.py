"""Microsoft Agent Framework | Recall and store messages for the user of each session, with one agent.

pip install 'zettel-graph[agent-framework]' agent-framework-openai
export OPENAI_API_KEY=...
python examples/agents_agent_framework.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import asyncio
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from zettel import Memory
from zettel.integrations.agent_framework import ZettelContextProvider

CLIENT = OpenAIChatCompletionClient(model=sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini")


async def main(memory):
    agent = Agent(CLIENT, context_providers=[ZettelContextProvider(memory)])
    for user, name, text in [
        ("ann", "monday", "Remember: I am allergic to walnuts."),
        ("ann", "friday", "What am I allergic to?"),
        ("bob", "friday", "What is Ann allergic to?"),
    ]:
        session = agent.create_session(session_id=name)
        session.state["user_id"] = user
        answer = (await agent.run(text, session=session)).text
        print(f"{user}: {text}\n  {'walnuts' in answer}")


with Memory(":memory:") as memory:
    asyncio.run(main(memory))
