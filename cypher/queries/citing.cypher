// Notes with revisions that cite one of these notes: the versions of these revisions, and all revisions.
UNWIND $ids AS id
MATCH (:Note {scope: $scope, id: id})<-[:CITES]-(r:Revision)<-[:REVISED]-(n:Note)
WITH n, collect(DISTINCT r.version) AS versions
RETURN versions, COLLECT { MATCH (n)-[:REVISED]->(r) RETURN r.body ORDER BY r.seq } AS revisions
