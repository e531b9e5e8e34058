"""How well and how fast zettel remembers, measured the same way every time.

``counting`` says what counts as found, ``locomo`` and ``two_wiki`` ask their questions through the public
face (``mixed`` those of both in one scope), ``baselines`` are what simple systems reach in the same run, ``beside``
has them by name, ``overlap`` compares stores, also on the ``synthetic`` scope. ``speed`` takes times on a transcript,
``sizes`` on ``zipf`` scopes of any size, next to a ``flat`` index, each in a ``probe`` of its own, with the watch of
``timing``. ``server`` measures Neo4j, its writes (``inserting``) beside ``bare`` statements; ``llm`` what a language
model costs and gives, with one of its own (``replay``) behind real HTTP (``completions``). ``machine`` tells where,
``pictures`` draws, ``everything`` runs all. ``fitting`` fits the scorer.
"""
