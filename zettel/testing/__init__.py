"""Conformance suites and reference implementations for packages that extend zettel."""
