"""Readers that several transcript formats share: lines, JSON, front matter, links, messages and times."""
