// Lock every scope for the rest of the transaction, in the same order for all writers.
MATCH (s:Scope)
WITH s ORDER BY s.scope
SET s.locked = $token
