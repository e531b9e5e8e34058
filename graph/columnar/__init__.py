"""A scope in memory: what its notes are found by, as columns of numbers, and a question's candidates from these.

It is the same whatever the notes are kept in: a store reads them into ``Columns`` and keeps these in step with itself.
"""
