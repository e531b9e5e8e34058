"""A local Neo4j Community server without Docker, from its own jars, with Java and (once) Maven.

``server.up(folder)`` starts it, ``server.down(folder)`` stops it, ``server.status(folder)`` describes it. The modules:
``javas`` (Java), ``jars`` (downloads), ``home`` (settings and data), ``process`` (the process).
"""
