// Lock the scope for the rest of the transaction, and create it if necessary. `previous` is its state before, and
// `unsettled` is true while its deletion or import is unfinished. The batch is `due` if the scope's seq and secret are
// those that it was planned on; then the scope advances.
MERGE (s:{{label}} {scope: $scope})
ON CREATE SET s.name = $name, s.of = $of, s.secret = $secret, s.born = $now, s.seq = 0, s.recorded_at = $earliest,
  s.changes = 0, s.floor = 0, s.indexed = 0, s.notes = 0, s.tokens = 0
SET s.locked = $token
WITH s, s {.seq, .secret, .changes, .written} AS previous,
  EXISTS { MATCH (x:Leaving) WHERE x.of = s.scope } OR EXISTS { MATCH (x:Arriving) WHERE x.of = s.scope } AS unsettled
WITH s, previous, unsettled,
  previous.seq = $expects AND previous.secret = $secret AND coalesce(previous.written, '') <> $token AS due
CALL (s, previous, due) {
  WITH s, previous
  WHERE due
  SET s.seq = $seq, s.changes = s.changes + 1, s.written = $token,
    s.recorded_at = CASE WHEN $recorded_at > s.recorded_at THEN $recorded_at ELSE s.recorded_at END,
    s.notes = s.notes + $added_notes, s.tokens = s.tokens + $added_tokens,
    s.floor = CASE WHEN $erased THEN previous.changes + 1 ELSE s.floor END
}
