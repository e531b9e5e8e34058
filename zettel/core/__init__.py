"""The rules of a memory: identity, fold, transactions, and each way in which people and jobs change notes."""
