"""How notes get better as others arrive: what replaces what, what says the same twice, what belongs together.

Rules only, as pure functions of notes; the jobs that act on them are in ``zettel.jobs``.
"""
