"""The local backend of a memory: a store opened in this process, and everything that works on it."""
