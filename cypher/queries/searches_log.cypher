// Add to the log of searches those whose hits are all there, and keep the newest of the scope.
MATCH (s:Scope {scope: $scope})
SET s.locked = $token
WITH s
CALL () {
  UNWIND $searches AS told
  WITH told, COLLECT { UNWIND told.notes AS id MATCH (n:Note {scope: $scope, id: id}) RETURN n } AS found
  WHERE size(found) = size(told.notes)
  MERGE (x:Search {scope: $scope, id: told.search.id})
  SET x = told.search
  FOREACH (n IN found | MERGE (x)-[:FOUND]->(n))
}
CALL () {
  MATCH (x:Search)
  WHERE x.scope = $scope AND x.asked_at IS NOT NULL AND x.id IS NOT NULL
  WITH x ORDER BY x.asked_at DESC, x.id DESC SKIP $logged
  DETACH DELETE x
}
