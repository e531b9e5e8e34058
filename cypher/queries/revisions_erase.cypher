// Delete single revisions of notes, and the checkpoints that may contain their values.
UNWIND $revisions AS row
MATCH (n:Note {scope: $scope, id: row.note})-[:REVISED]->(r:Revision)
WHERE r.version IN row.versions
OPTIONAL MATCH (n)-[:BEGAN_AS]->(b)
SET b.checkpoint = null, b.checkpoint_version = null
DETACH DELETE r
