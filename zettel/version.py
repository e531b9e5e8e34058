"""The name under which zettel is installed, and its version."""

DISTRIBUTION = "zettel-graph"
VERSION = "0.1.0"
