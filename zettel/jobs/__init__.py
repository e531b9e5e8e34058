"""Durable background jobs: their declarations, their handlers, and the loop that runs them.

A job stays in the store until its effect is written. A worker that claims it has a lease with a token. The commit of
the effect checks the token and the versions of the notes that it read. So a job may run twice, and its effect is
written once.
"""
