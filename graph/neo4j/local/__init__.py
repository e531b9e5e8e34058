"""A real Neo4j Community on one's own machine, without Docker: from its own jars, with Java and (once) Maven.

``server.up(folder)`` starts one, ``server.down(folder)`` ends it, ``server.status(folder)`` tells how it is. One file a
step: which Java (``javas``), the jars (``jars``), the folder with settings and data (``home``), the process
(``process``).
"""
