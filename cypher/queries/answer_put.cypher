// Keep an answer in the place of the one of its key, unless one of the notes that were asked about is gone.
WITH COLLECT { UNWIND $notes AS id MATCH (n:Note {scope: $scope, id: id}) RETURN n } AS about
WHERE size(about) = size($notes)
CALL () {
  MATCH (old:Answer {scope: $scope, key: $answer.key})
  DETACH DELETE old
}
CREATE (a:Answer)
SET a = $answer
FOREACH (n IN about | CREATE (a)-[:ASKED_ABOUT]->(n))
