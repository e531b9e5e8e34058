// Set the states of notes, and create their index nodes.
UNWIND $notes AS row
MATCH (n:Note {scope: $scope, id: row.id})
SET n = row.note
CREATE (n)-[:FOUND_BY]->(:Index {scope: $scope, id: n.id, seq: n.seq})
