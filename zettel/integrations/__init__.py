"""Adapters that give a memory to agent frameworks, tools and protocols.

Each module uses only the public API of a memory and imports its framework on first use.
"""
