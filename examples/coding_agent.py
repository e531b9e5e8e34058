"""Give a coding agent rules, lessons from tool calls, and examples that worked.

Run it: python examples/coding_agent.py
"""

from zettel import Memory, Scope
from zettel.integrations.core_memory import core
from zettel.integrations.tools import MemoryTools

PROJECT = Scope(user="ann", agent="tide-api")


def attempt(memory: Memory, session: str, tool: str, outcome: str) -> None:
    """Store a task, the call of a tool and its result, as an agent does."""
    memory.add("The nightly export to the warehouse failed.", role="user", session=session)
    calls = [{"tool": tool, "input": {"table": "warehouse"}, "id": "1"}]
    memory.add(payload={"calls": calls}, role="assistant", session=session)
    result = {"tool": tool, "call": "1", "outcome": outcome}
    memory.add(f"{tool}: {outcome}", role="tool", speaker=tool, session=session, metadata=result)


def main() -> None:
    with Memory(":memory:", scope=PROJECT) as memory:
        tools = MemoryTools(memory)
        tools.call("add_memory", {"text": "Always run the tests with make check.", "pinned": True})
        attempt(memory, "monday", "retry_job", "failure")
        attempt(memory, "tuesday", "clear_lock", "success")
        attempt(memory, "wednesday", "clear_lock", "success")
        memory.flush()
        memory.evolve()

        task = "The export to the warehouse failed again."
        print(core(memory, task=task))
        print()
        print(memory.examples(task, k=1)[0])


if __name__ == "__main__":
    main()
