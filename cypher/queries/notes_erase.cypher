// Destroy notes with their vectors, Revisions and jobs; they are in no index any more.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
OPTIONAL MATCH (n)-[:FOUND_BY|HAS_VECTOR|REVISED|BEGAN_AS]->(part)
OPTIONAL MATCH (j:Job)-[:ABOUT]->(n)
DETACH DELETE part, j, n
