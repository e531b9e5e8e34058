"""Anthropic's memory tool | Let Claude write files, which are notes of a memory.

pip install 'zettel-graph[anthropic]'
export ANTHROPIC_API_KEY=...
python examples/agents_anthropic.py

ANTHROPIC_BASE_URL names another server, and the first argument another model than claude-sonnet-4-5.
"""

import sys

from anthropic import Anthropic

from zettel import Memory, Scope
from zettel.integrations.anthropic_memory import ZettelMemoryTool

MODEL = sys.argv[1] if len(sys.argv) > 1 else "claude-sonnet-4-5"

client = Anthropic()

with Memory(":memory:") as memory:
    for user, question in [
        ("Ann", "Remember: I am allergic to walnuts."),
        ("Ann", "What am I allergic to?"),
        ("Ben", "What am I allergic to?"),
    ]:
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=1000,
            betas=["context-management-2025-06-27"],
            tools=[ZettelMemoryTool(memory, scope=Scope(user=user))],  # each person has files of their own
            messages=[{"role": "user", "content": question}],
        )
        print(f"{user}: {question}\n  {runner.until_done().content[-1].text}")
