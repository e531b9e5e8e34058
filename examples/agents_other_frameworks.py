"""Haystack, DSPy, smolagents | Use the memory tools as Python functions.

pip install zettel-graph haystack-ai dspy 'smolagents[openai]'
export OPENAI_API_KEY=...
python examples/agents_other_frameworks.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

import dspy
import smolagents
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool

from zettel import Memory, Scope
from zettel.integrations.tools import MemoryTools

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"


class MemoryTool(smolagents.Tool):
    skip_forward_signature_validation = True
    output_type = "object"

    def __init__(self, tool):
        fields, required = tool.parameters["properties"], tool.parameters.get("required", [])
        self.name, self.description = tool.name, tool.description
        self.inputs = {name: {**field, "nullable": name not in required} for name, field in fields.items()}
        self.forward = lambda **arguments: tool(**arguments)
        super().__init__()


def main(memory):
    for user, text in [
        ("ann", "Remember: I am allergic to walnuts."),
        ("ann", "What am I allergic to?"),
        ("bob", "What am I allergic to?"),
    ]:
        tools = MemoryTools(memory, scope=Scope(user=user))  # each user has tools of their own
        offered = [Tool(tool.name, tool.description, tool.parameters, tool.__call__) for tool in tools]
        agent = Agent(chat_generator=OpenAIChatGenerator(model=MODEL), tools=offered)
        answer = agent.run([ChatMessage.from_user(text)])["last_message"].text
        print(f"{user}: {text}\n  {answer}")

    ann = MemoryTools(memory, scope=Scope(user="ann"), read_only=True)
    search, *_ = (dspy.Tool(tool, tool.name, tool.description, tool.parameters["properties"]) for tool in ann)
    print(f"DSPy: {search(query='What am I allergic to?')['memories'][0]['text']}")
    search, *_ = map(MemoryTool, ann)
    print(f"smolagents: {search(query='What am I allergic to?')['memories'][0]['text']}")


if __name__ == "__main__":
    with Memory(":memory:") as opened:
        main(opened)
