// Lock the scope for the rest of the transaction, make it if it is not there, and tell where it stands.
MERGE (s:{{label}} {scope: $scope})
ON CREATE SET s.name = $name, s.of = $of, s.secret = $secret, s.born = $now, s.seq = 0, s.recorded_at = $never,
  s.changes = 0, s.floor = 0, s.notes = 0, s.tokens = 0
SET s.locked = $token
WITH s
RETURN s.seq AS seq, s.secret AS secret, s.changes AS changes, s.written AS written,
  COLLECT { MATCH (space:Space) RETURN [space.id, space.dim] } AS spaces
