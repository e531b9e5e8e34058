"""LangGraph with a memory: an agent with its tools, and a node that stores items in it.

pip install 'zettel-graph[langgraph]' langchain-openai
export OPENAI_API_KEY=...
python examples/agents_langgraph.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.store.base import BaseStore

from zettel import Memory
from zettel.integrations.langgraph import MemoryHooks, ZettelStore, memory_tools

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"
USERS = ("users", "ann")


def note_visit(state: MessagesState, *, store: BaseStore) -> dict[str, list[str]]:
    """Store an item; LangGraph passes the store to each node."""
    store.put(USERS, "visit", {"text": "Ann was here."})
    return {"messages": []}


with Memory(":memory:") as memory:
    store, model = ZettelStore(memory), ChatOpenAI(model=MODEL)

    agent = create_react_agent(model, memory_tools(memory), store=store)
    for question in ["Remember: Ann is allergic to walnuts.", "What is Ann allergic to?"]:
        print(question)
        print(f"  {agent.invoke({'messages': [('user', question)]})['messages'][-1].content}")

    hooks = MemoryHooks(memory)  # hooks work without tools
    talking = create_react_agent(model, [], pre_model_hook=hooks.before, post_model_hook=hooks.after)
    question = "Is Ann allergic to anything?"
    print(question)
    print(f"  {talking.invoke({'messages': [('user', question)]})['messages'][-1].content}")

    graph = StateGraph(MessagesState).add_node(note_visit).add_edge(START, "note_visit").compile(store=store)
    graph.invoke({"messages": []})
    (visit,) = store.search(USERS, query="Who was here?", limit=1)
    print(f"stored by the run: {visit.value}")
