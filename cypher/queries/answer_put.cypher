// Store an answer in place of the one with its key, unless one of its notes was erased.
WITH COLLECT { UNWIND $notes AS id MATCH (n:Note {scope: $scope, id: id}) RETURN n } AS about
WHERE size(about) = size($notes)
CALL () {
  MATCH (old:Answer {scope: $scope, key: $answer.key})
  DETACH DELETE old
}
CREATE (a:Answer)
SET a = $answer
FOREACH (n IN about | CREATE (a)-[:ASKED_ABOUT]->(n))
