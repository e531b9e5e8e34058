// Record that the vector index contains all vectors of a scope up to a change count.
MATCH (s:Scope {scope: $scope})
SET s.indexed = CASE WHEN $changes > s.indexed THEN $changes ELSE s.indexed END
