"""The embedded store: one SQLite file, with the scopes in use cached in memory as columns.

A write is one transaction on the single writer connection. A read borrows a connection and sees one state. Searches
run on the scope's columns, which each read first updates from the file. Applied files in ``migrations/`` never change.
"""
