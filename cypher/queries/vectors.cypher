// The vectors of notes.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[:HAS_VECTOR]->(v:Vector)
WHERE v.space = $space
RETURN n.id AS note, v.bytes AS bytes
