"""Durable work: what follows a write, who does it, and what happens when it fails.

A job lives in the store until its effect is written. Whoever claims it holds a lease with a token; the commit of its
effect checks the token and the versions of what it read, so a job may run twice and its effect is written once.
"""
