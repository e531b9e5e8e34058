"""Google's Agent Development Kit | Search stored sessions in later ones.

pip install 'zettel-graph[adk]'
export OPENAI_API_KEY=...
python examples/agents_adk.py

OPENAI_BASE_URL names another server, and the first argument another model of LiteLLM than openai/gpt-4o-mini.
"""

import asyncio
import sys

from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from zettel import Memory
from zettel.integrations.adk import ZettelMemoryService, memory_tools

MODEL = sys.argv[1] if len(sys.argv) > 1 else "openai/gpt-4o-mini"
APP = "kitchen"


async def turn(runner: Runner, user: str, session: str, question: str) -> None:
    """Run a session with one turn, and store it in the memory."""
    sessions = runner.session_service
    await sessions.create_session(app_name=APP, user_id=user, session_id=session)
    message = types.Content(role="user", parts=[types.Part(text=question)])
    async for event in runner.run_async(user_id=user, session_id=session, new_message=message):
        if event.is_final_response():
            print(f"{user}: {question}\n  {event.content.parts[0].text}")
    done = await sessions.get_session(app_name=APP, user_id=user, session_id=session)
    await runner.memory_service.add_session_to_memory(done)


async def main() -> None:
    with Memory(":memory:") as memory:
        agent = Agent(name="helper", model=LiteLlm(model=MODEL), tools=memory_tools(memory))
        runner = Runner(
            app_name=APP, agent=agent, session_service=InMemorySessionService(),
            memory_service=ZettelMemoryService(memory),
        )  # fmt: skip
        await turn(runner, "ann", "monday", "Remember: Ann is allergic to walnuts.")
        await turn(runner, "ann", "friday", "What is Ann allergic to?")
        await turn(runner, "ben", "sunday", "What is Ann allergic to?")
        found = await runner.memory_service.search_memory(app_name=APP, user_id="ann", query="walnuts")
        print(f"remembered for ann: {found.memories[0].content.parts[0].text}")


asyncio.run(main())
