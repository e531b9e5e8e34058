"""The HTTP server: a memory behind access keys that are bound to scopes.

``app`` builds the application from the ``routes_*`` modules and puts it behind ``gate``, which checks keys and limits.
``bodies`` defines the request bodies; ``zettel.remote.wire`` encodes the answers, and the client uses it too.
"""
