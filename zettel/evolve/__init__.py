"""Rules that update notes when others arrive: duplicates, topics, insights, lessons, decay.

The rules are pure functions; the jobs in ``zettel.jobs`` apply them. The ``by_model`` modules call a language model.
"""
