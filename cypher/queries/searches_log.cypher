// Log the searches whose hits all exist, and drop all but the newest $limit of the scope.
MATCH (s:Scope {scope: $scope})
SET s.locked = $token
WITH s
CALL () {
  UNWIND $searches AS row
  WITH row, COLLECT { UNWIND row.notes AS id MATCH (n:Note {scope: $scope, id: id}) RETURN n } AS hits
  WHERE size(hits) = size(row.notes)
  MERGE (x:Search {scope: $scope, id: row.search.id})
  SET x = row.search
  FOREACH (n IN hits | MERGE (x)-[:FOUND]->(n))
}
CALL () {
  MATCH (x:Search)
  WHERE x.scope = $scope AND x.asked_at IS NOT NULL AND x.id IS NOT NULL
  WITH x ORDER BY x.asked_at DESC, x.id DESC SKIP $limit
  DETACH DELETE x
}
