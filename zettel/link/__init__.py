"""Links between notes: exact MENTIONS, near links, changes of fact, and typed links that a model decides.

The rules are pure functions; the link job in ``zettel.jobs`` applies them, with a date and a reason for each link.
"""
