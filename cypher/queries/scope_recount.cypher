// Set a scope's sums, and raise its seq to the highest seq in use.
MATCH (s:Scope {scope: $scope})
SET s.notes = $notes, s.tokens = $tokens, s.floor = s.changes + 1, s.changes = s.changes + 1
WITH s
CALL (s) {
  MATCH (x:Event) WHERE x.scope = s.scope AND x.seq >= 0 RETURN x.seq AS seq ORDER BY seq DESC LIMIT 1
  UNION ALL
  MATCH (x:Note) WHERE x.scope = s.scope AND x.seq >= 0 RETURN x.seq AS seq ORDER BY seq DESC LIMIT 1
  UNION ALL
  MATCH (x:Revision) WHERE x.scope = s.scope AND x.id IS NOT NULL RETURN x.seq AS seq ORDER BY seq DESC LIMIT 1
}
WITH s, max(seq) AS last
SET s.seq = CASE WHEN last > s.seq THEN last ELSE s.seq END
