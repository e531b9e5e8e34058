"""The remote backend of a memory: the client of a zettel server, and the wire format that both ends use."""
