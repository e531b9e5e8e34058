"""In-memory columns of a scope, and candidate selection on them, shared by all stores.

A store loads its notes into ``Columns`` and updates them when the stored data changes.
"""
