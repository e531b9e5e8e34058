"""How a language model is asked: one request at a time, within a budget, never twice for the same, and never trusted.

What is asked and what is made of the answer belongs to the rooms that ask (``annotate``, ``link``); their seams are in
``zettel.llm.ports``.
"""
