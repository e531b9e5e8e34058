"""OpenAI Agents SDK | Store sessions item by item, and search them in later ones.

pip install 'zettel-graph[openai-agents]'
export OPENAI_API_KEY=...
python examples/agents_openai_agents.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled

from zettel import Memory
from zettel.integrations.openai_agents import ZettelSession, memory_tools

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"

set_default_openai_api("chat_completions")  # other servers support it too
set_tracing_disabled(True)  # sends data only to the model

with Memory(":memory:") as memory:
    agent = Agent("helper", instructions="You have a memory. Use it.", model=MODEL, tools=memory_tools(memory))
    for session, question in [
        ("monday", "Remember: Ann is allergic to walnuts."),
        ("friday", "What is Ann allergic to?"),
    ]:
        answer = Runner.run_sync(agent, question, session=ZettelSession(memory, session))
        print(f"{session}: {question}\n  {answer.final_output}")

    print("Stored messages:")
    for note in memory.list().notes:
        print(f"  {note.session}, {note.speaker}: {note.content}")
