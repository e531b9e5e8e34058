"""LangGraph | Run agents for many users, a graph whose model has a memory, and a store of items.

pip install 'zettel-graph[langgraph]' langchain-openai
export OPENAI_API_KEY=...
python examples/agents_langgraph.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from zettel import Memory
from zettel.integrations.langgraph import MemoryMiddleware, ZettelStore, memory_tools, with_memory

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"
USERS = ("users", "ann")


def run_of(user, thread):
    """The config of a run: its user is the scope of the memory, its thread is the session."""
    return {"configurable": {"user_id": user, "thread_id": thread}}


def ask(agent, user, thread, question):
    answer = agent.invoke({"messages": [("user", question)]}, run_of(user, thread))
    print(f"{user}: {question}\n  {answer['messages'][-1].content}")


with Memory(":memory:") as memory:
    store, model = ZettelStore(memory), ChatOpenAI(model=MODEL)

    # One agent serves everybody: its tools find only the memories of the run's user.
    agent = create_agent(model, memory_tools(memory))
    ask(agent, "ann", "monday", "Remember: I am allergic to walnuts.")
    ask(agent, "ann", "tuesday", "What am I allergic to?")
    ask(agent, "bob", "tuesday", "What am I allergic to?")

    talking = create_agent(model, middleware=[MemoryMiddleware(memory)])  # the middleware works without tools
    ask(talking, "ann", "wednesday", "Am I allergic to anything?")

    remembering = with_memory(memory, model)  # for the nodes of your own graph

    def talk(state: MessagesState):
        return {"messages": [remembering.invoke(state["messages"])]}

    def note_visit(state: MessagesState, *, store: BaseStore):
        """Store an item; LangGraph passes the store to each node."""
        store.put(USERS, "visit", {"text": "Ann was here."})
        return {"messages": []}

    nodes = StateGraph(MessagesState).add_node(talk).add_node(note_visit)
    graph = nodes.add_edge(START, "talk").add_edge("talk", "note_visit").compile(store=store)
    ask(graph, "bob", "friday", "Where do I live?")
    (visit,) = store.search(USERS, query="Who was here?", limit=1)
    print(f"stored by the run: {visit.value}")
