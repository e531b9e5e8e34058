// Lock the scope for the rest of the transaction, make it if it is not there, and tell where it stood, and whether one of
// its key comes or goes. If it stood where the batch was planned, it stands now where the batch brings it.
MERGE (s:{{label}} {scope: $scope})
ON CREATE SET s.name = $name, s.of = $of, s.secret = $secret, s.born = $now, s.seq = 0, s.recorded_at = $never,
  s.changes = 0, s.floor = 0, s.notes = 0, s.tokens = 0
SET s.locked = $token
WITH s, s {.seq, .secret, .changes, .written} AS stood,
  EXISTS { MATCH (x:Leaving|Arriving) WHERE x.of = s.scope } AS unsettled
CALL (s, stood) {
  WITH s, stood
  WHERE stood.seq = $expects AND stood.secret = $secret AND coalesce(stood.written, '') <> $token
  SET s.seq = $seq, s.changes = s.changes + 1, s.written = $token,
    s.recorded_at = CASE WHEN $recorded_at > s.recorded_at THEN $recorded_at ELSE s.recorded_at END,
    s.notes = s.notes + $notes, s.tokens = s.tokens + $tokens,
    s.floor = CASE WHEN $erased THEN stood.changes + 1 ELSE s.floor END
}
RETURN stood.seq AS seq, stood.secret AS secret, stood.changes AS changes, stood.written AS written, unsettled,
  COLLECT { MATCH (space:Space) RETURN [space.id, space.dim] } AS spaces
