// Delete single revisions of notes.
UNWIND $revisions AS row
MATCH (:Note {scope: $scope, id: row.note})-[:REVISED]->(r:Revision)
WHERE r.version IN row.versions
DETACH DELETE r
