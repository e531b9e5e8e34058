"""From an event's text to a note's fields and its index: tokens, names, dates, terms, caption, context, keywords.

Everything here is pure, quick and without a model, so that it can run before the commit of ``add``.
"""
