"""Store the notes of a program for A-MEM in zettel by changing one import.

export OPENAI_API_KEY=...
python examples/from_amem.py

OPENAI_API_BASE names another server. Without a key, no model annotates the notes.
"""

from zettel.errors import JobFailed
from zettel.integrations.amem import AgenticMemorySystem  # was: from agentic_memory.memory_system import …

memory_system = AgenticMemorySystem(
    model_name="all-MiniLM-L6-v2", llm_backend="openai", llm_model="gpt-4o-mini",
    url=":memory:",  # without it, the notes are in zettel.db
)  # fmt: skip

bent = memory_system.add_note("Maple ribs are bent by hand.", tags=["violin"], category="Craft", time="202403151820")
iron = memory_system.add_note("The iron is kept at two hundred degrees.", links=[bent])
memory_system.add_note("Rosin is cooked from the resin of larches.")

print("Ribs?")
for found in memory_system.search_agentic("How are maple ribs made?", k=2):
    print(f"  {found['content']}", "(a link led there)" if found["is_neighbor"] else "")

memory_system.update(iron, content="The iron is kept at a hundred and eighty degrees.")
print("The iron:")
for note in memory_system.memories.values():
    if note.id == iron:
        print(f"  {note.content} It was read {note.retrieval_count} time(s), and is linked to the ribs: "
              f"{note.links == [bent]}")  # fmt: skip

print("For a prompt:")
print(memory_system.find_related_memories("rosin", k=1)[0].replace("\t", "\n  "), end="")

try:
    memory_system.consolidate_memories()  # runs the background jobs now
except JobFailed as failed:
    print(f"Some notes are not annotated: {failed}")
memory_system.memory.close()
