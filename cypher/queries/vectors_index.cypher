// Add some of a scope's vectors to the vector index, and return how many.
MATCH (s:Scope {scope: $scope})
CALL (s) {
  MATCH (v:Vector)
  WHERE v.scope = $scope AND v.space = $space AND v.changed > s.indexed AND NOT v:Vector{{dim}}
  WITH v LIMIT $most
  SET v:Vector{{dim}}
  RETURN count(v) AS vectors
}
RETURN vectors
