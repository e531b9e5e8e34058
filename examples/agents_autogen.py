"""AutoGen | Add memories to the context of an agent, or give it memory tools.

pip install 'zettel-graph[autogen]' autogen-agentchat 'autogen-ext[openai]'
export OPENAI_API_KEY=...
python examples/agents_autogen.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from zettel import Memory
from zettel.integrations.autogen import ZettelMemory, memory_tools

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"


async def main() -> None:
    client = OpenAIChatCompletionClient(model=MODEL)
    with Memory(":memory:") as memory:
        mine = ZettelMemory(memory, k=1)
        metadata = {"speaker": "Ann", "occurred_at": "2024-05-01"}
        await mine.add(MemoryContent(content="I am allergic to walnuts.", mime_type="text/plain", metadata=metadata))

        knowing = AssistantAgent("knowing", client, memory=[mine])
        tending = AssistantAgent("tending", client, tools=memory_tools(memory), reflect_on_tool_use=True)
        for agent, question in [
            (knowing, "What is Ann allergic to?"),
            (tending, "Remember: Ann's boat is called Blue Heron."),
            (knowing, "What is the boat of Ann called?"),
        ]:
            answer = await agent.run(task=question)
            print(f"{agent.name}: {question}\n  {answer.messages[-1].content}")
    await client.close()


asyncio.run(main())
