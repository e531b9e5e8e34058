"""The room of the HTTP server: a memory for whatever speaks HTTP, with keys that are bound to scopes.

``wire`` says how values go as JSON and come back, ``bodies`` what requests look like; the HTTP client shares both.
``app`` puts the routes, one file for each part of the public face, behind the ``gate``, which asks for keys and holds
limits.
"""
