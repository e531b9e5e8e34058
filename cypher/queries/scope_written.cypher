// One batch was written to the scope: where it stands now, and what its statistics are.
MATCH (s:{{label}} {scope: $scope})
SET s.seq = $seq, s.changes = s.changes + 1, s.written = $token,
  s.recorded_at = CASE WHEN $recorded_at > s.recorded_at THEN $recorded_at ELSE s.recorded_at END,
  s.notes = s.notes + $notes, s.tokens = s.tokens + $tokens,
  s.floor = CASE WHEN $erased THEN s.changes ELSE s.floor END
