"""Give a model the memory tools in an agent loop.

Any client of the OpenAI protocol works; this one is OpenAI's own.

export OPENAI_API_KEY=...
python examples/tools_in_a_loop.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import json
import sys

from openai import OpenAI

from zettel import Memory
from zettel.integrations.core_memory import core
from zettel.integrations.tools import MemoryTools

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"


def turn(client: OpenAI, memory: Memory, question: str) -> str:
    """Run one turn of a new conversation; only the memory connects it to earlier ones."""
    tools = MemoryTools(memory)
    messages = [{"role": "system", "content": f"You have a memory. Use it.\n\n{core(memory)}"},
                {"role": "user", "content": question}]  # fmt: skip
    while True:
        answer = client.chat.completions.create(model=MODEL, messages=messages, tools=tools.openai()).choices[0].message
        if not answer.tool_calls:
            return answer.content
        messages.append(answer.model_dump(exclude_none=True))
        for call in answer.tool_calls:
            answer = tools.call(call.function.name, call.function.arguments)
            print(f"  {call.function.name} {call.function.arguments}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(answer)})


with Memory(":memory:") as memory, OpenAI() as client:
    for question in ["Remember: Ann is allergic to walnuts.", "Remember: Ann's boat is called Blue Heron.",
                  "What is Ann allergic to?"]:  # fmt: skip
        print(question)
        print(f"  {turn(client, memory, question)}")
