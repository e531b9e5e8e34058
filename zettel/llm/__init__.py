"""Requests to language models: budget, cache, retries and validation of answers."""
