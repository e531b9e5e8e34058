// All vectors of a scope that changed up to here are in the vector index.
MATCH (s:Scope {scope: $scope})
SET s.indexed = CASE WHEN $changes > s.indexed THEN $changes ELSE s.indexed END
