"""Finding notes: the question taken apart, the pool it is asked of, and the hits packed for a prompt.

Scores come from ``zettel.scoring``, candidates from a store; nothing here knows a database.
"""
