// Lock the scope for the rest of the transaction, make it if it is not there, and say where it stood, and whether one of
// its key comes or goes. If it stood where the batch was planned, the batch is `due`, and it stands now where that brings
// it.
MERGE (s:{{label}} {scope: $scope})
ON CREATE SET s.name = $name, s.of = $of, s.secret = $secret, s.born = $now, s.seq = 0, s.recorded_at = $earliest,
  s.changes = 0, s.floor = 0, s.indexed = 0, s.notes = 0, s.tokens = 0
SET s.locked = $token
WITH s, s {.seq, .secret, .changes, .written} AS stood,
  EXISTS { MATCH (x:Leaving) WHERE x.of = s.scope } OR EXISTS { MATCH (x:Arriving) WHERE x.of = s.scope } AS unsettled
WITH s, stood, unsettled,
  stood.seq = $expects AND stood.secret = $secret AND coalesce(stood.written, '') <> $token AS due
CALL (s, stood, due) {
  WITH s, stood
  WHERE due
  SET s.seq = $seq, s.changes = s.changes + 1, s.written = $token,
    s.recorded_at = CASE WHEN $recorded_at > s.recorded_at THEN $recorded_at ELSE s.recorded_at END,
    s.notes = s.notes + $more_notes, s.tokens = s.tokens + $more_tokens,
    s.floor = CASE WHEN $erased THEN stood.changes + 1 ELSE s.floor END
}
