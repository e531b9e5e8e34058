"""Memory for agents, by the interfaces that they have already: tools, frameworks, protocols.

Each file here uses only the public face of a memory, and imports the package it is for where it needs it.
"""
