// The term uses in the index of unarchived notes.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
WHERE n.archived IS NULL
RETURN id, COLLECT { MATCH (n)-[h:HAS_TERM]->(t) RETURN [t.name, h.text, h.kind, h.count] ORDER BY t.name } AS terms
