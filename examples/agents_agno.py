"""Agno | Recall and store messages for the user of each run, with one agent.

pip install 'zettel-graph[agno]' openai
export OPENAI_API_KEY=...
python examples/agents_agno.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.learn import LearningMachine
from agno.models.openai import OpenAIChat

from zettel import Memory
from zettel.integrations.agno import ZettelLearning

MODEL = OpenAIChat(id=sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini")

with Memory(":memory:") as memory:
    learning = LearningMachine(custom_stores={"zettel": ZettelLearning(memory)})
    agent = Agent(model=MODEL, db=InMemoryDb(), learning=learning, telemetry=False)
    for user, session, text in [
        ("ann", "monday", "Remember: I am allergic to walnuts."),
        ("ann", "friday", "What am I allergic to?"),
        ("bob", "friday", "What is Ann allergic to?"),
    ]:
        answer = agent.run(text, user_id=user, session_id=session).content
        print(f"{user}: {text}\n  {'walnuts' in answer}")
