// Delete notes with their vectors, revisions, jobs and feedback, and the searches that found them. They were removed
// from the index before.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
OPTIONAL MATCH (n)-[:FOUND_BY|HAS_VECTOR|REVISED|BEGAN_AS|USED]->(part)
OPTIONAL MATCH (j)-[:ABOUT|FOUND]->(n)
DETACH DELETE part, j, n
