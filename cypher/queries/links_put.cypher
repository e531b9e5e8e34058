// Store links of one type. Two notes have at most one derived link (MENTIONS), and one decided link for each note that
// decided it. Links to erased notes are skipped.
UNWIND $links AS row
MATCH (source:Note {scope: $scope, id: row.source})
CALL (source, row) {
  MATCH (target:Note {scope: $scope, id: row.target})
  //: when decided
  MERGE (source)-[l:{{type}} {decided: true, owner: row.owner}]->(target)
  //: otherwise
  MERGE (source)-[l:{{type}} {decided: false}]->(target)
  //: end
  SET l += row.link
}
WITH DISTINCT source
MATCH (source)-[:FOUND_BY]->(i)
SET i.changed = $changes
