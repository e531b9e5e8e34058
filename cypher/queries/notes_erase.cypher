// Destroy notes with their vectors, Revisions, jobs and what feedback says of them, and the searches that found them;
// they are in no index any more.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
OPTIONAL MATCH (n)-[:FOUND_BY|HAS_VECTOR|REVISED|BEGAN_AS|USED]->(part)
OPTIONAL MATCH (j)-[:ABOUT|FOUND]->(n)
DETACH DELETE part, j, n
