"""Durable background jobs: their declarations, their handlers, and the loop that runs them.

A job stays in the store until its effect is written. A worker that claims a job gets a lease with a token. The commit
of the effect checks the token and the versions of the notes that the worker read. So a job may run twice, but its
effect is written once.
"""
