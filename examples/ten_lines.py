"""Add three events in ten lines, and find an answer that shares no word with the question.

Run it: python examples/ten_lines.py
"""

from zettel import Memory

with Memory(":memory:") as memory:  # a file name makes it durable
    memory.add("A cutter built in 1931, moored in Risør.", title="Blue Heron")
    memory.add("I bought the Blue Heron!", speaker="Ann", occurred_at="2024-05-01T18:00Z")
    memory.add("We sail in June.", speaker="Ben", occurred_at="2024-05-01T18:01Z", wait=True)

    for hit in memory.search("Where is the boat that Ann bought?", k=2, explain=True):
        print(f"{hit.score:.2f}  {hit.note.content}", *(f"(by way of: {step.name})" for step in hit.why.path))
