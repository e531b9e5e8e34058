"""The HTTP server: a memory behind access keys that are bound to scopes.

``app`` builds the application and puts it behind ``gate``, which checks keys and limits. ``endpoints`` makes the
endpoints of ``zettel.remote.routes`` from the signatures of ``AsyncMemory``. The modules ``routes_*`` contain endpoints
with behaviour of their own: a ``handler`` is called instead of the method, an ``endpoint`` also reads the request.
``zettel.remote.wire`` encodes the answers, and the client uses it too.
"""
