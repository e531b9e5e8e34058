"""The Neo4j store, and a local Neo4j server for trying it."""
