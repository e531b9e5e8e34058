"""The Neo4j store, and a Neo4j to try it on."""
