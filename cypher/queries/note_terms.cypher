// The terms in the index of an unarchived note, each with the number of notes that have the term.
MATCH (n:Note {scope: $scope, id: $id})-[h:HAS_TERM]->(t)
WHERE n.archived IS NULL
RETURN t.name AS key, h.text AS text, h.kind AS kind, COUNT { (t)<-[:HAS_TERM]-() } AS notes ORDER BY key
