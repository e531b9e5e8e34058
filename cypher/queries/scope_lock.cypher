// Lock the scope for the rest of the transaction, make it if it is not there, and tell where it stands, and
// whether one of its key is coming or going in several transactions.
MERGE (s:{{label}} {scope: $scope})
ON CREATE SET s.name = $name, s.of = $of, s.secret = $secret, s.born = $now, s.seq = 0, s.recorded_at = $never,
  s.changes = 0, s.floor = 0, s.notes = 0, s.tokens = 0
SET s.locked = $token
WITH s
RETURN s.seq AS seq, s.secret AS secret, s.changes AS changes, s.written AS written,
  EXISTS { MATCH (x:Leaving|Arriving) WHERE s.scope IN [x.scope, x.of] } AS unsettled,
  COLLECT { MATCH (space:Space) RETURN [space.id, space.dim] } AS spaces
