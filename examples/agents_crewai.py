"""CrewAI | Store the memories of crews as notes.

pip install 'zettel-graph[crewai]'
export OPENAI_API_KEY=...
python examples/agents_crewai.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

import crewai

from zettel import Memory
from zettel.integrations.crewai import ZettelStorage

MODEL = sys.argv[1] if len(sys.argv) > 1 else "openai/gpt-4o-mini"

with Memory(":memory:") as memory:
    storage = ZettelStorage(memory)
    remembers = crewai.Memory(storage=storage, embedder=storage.embedder, llm=MODEL)
    for text in ["Ann is allergic to walnuts.", "The harbour closes at ten."]:
        remembers.remember(text, scope="/kitchen", categories=["facts"], importance=0.8, metadata={})
    remembers.drain_writes()

    (match,) = remembers.recall("What is Ann allergic to?", depth="shallow", limit=1)
    print(f"recalled: {match.record.content}")
    print(f"stored as notes: {[note.content for note in memory.list().notes]}")

    cook = crewai.Agent(role="cook", goal="Cook for Ann.", backstory="You know the harbour.", llm=MODEL)
    task = crewai.Task(description="What must not be in Ann's cake?", expected_output="One line.", agent=cook)
    crew = crewai.Crew(agents=[cook], tasks=[task], memory=remembers)
    print(f"answered: {crew.kickoff().raw}")
