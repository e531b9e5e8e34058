// Take some of a scope's vectors into the vector index, oldest first; how many there were.
MATCH (s:Scope {scope: $scope})
CALL (s) {
  MATCH (v:Vector)
  WHERE v.scope = $scope AND v.space = $space AND v.changed > s.indexed AND NOT v:Vector{{dim}}
  WITH v LIMIT $most
  SET v:Vector{{dim}}
  RETURN count(v) AS vectors
}
RETURN vectors
