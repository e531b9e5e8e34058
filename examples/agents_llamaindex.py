"""LlamaIndex | Recall messages of one conversation in another, and search them with a retriever.

pip install 'zettel-graph[llamaindex]' llama-index-llms-openai
export OPENAI_API_KEY=...
python examples/agents_llamaindex.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import os
import sys

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import Memory as Chat
from llama_index.llms.openai import OpenAI

from zettel import Memory
from zettel.integrations.llamaindex import ZettelMemoryBlock, ZettelRetriever

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"


def conversation(memory: Memory, name: str) -> SimpleChatEngine:
    """Start a conversation; only the memory connects it to earlier ones."""
    chat = Chat.from_defaults(session_id=name, memory_blocks=[ZettelMemoryBlock(memory)])
    llm = OpenAI(model=MODEL, api_base=os.environ.get("OPENAI_BASE_URL"))
    return SimpleChatEngine.from_defaults(llm=llm, memory=chat)


with Memory(":memory:") as memory:
    print(f"first conversation: {conversation(memory, 'monday').chat('I am allergic to walnuts.')}")
    print(f"another one: {conversation(memory, 'tuesday').chat('What am I allergic to?')}")
    (found,) = ZettelRetriever(memory, k=1).retrieve("Who is allergic to walnuts?")
    print(f"found: {found.node.get_content()}")
