"""The embedded store: one SQLite file is the record, and the scopes in use are held in memory as columns.

A write is one transaction on the one writer connection. A read borrows a connection and sees one state. Questions are
answered from the scope's columns, which are brought in step with the file at the start of each read, so that they
never show anything else than the file. ``migrations/`` holds the layout; applied files never change.
"""
