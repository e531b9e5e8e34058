"""How well and how fast zettel remembers, measured the same way every time.

``counting`` says what counts as found, ``locomo`` and ``two_wiki`` ask their questions through the public
face (``mixed`` those of both in one scope), ``baselines`` are what simple systems reach in the same run,
``overlap`` compares two stores, also on the ``synthetic`` scope, ``speed`` takes times, ``machine`` tells where.
"""
