// Store links of one type. Of the derived ones (MENTIONS) there is one between two notes, of decided ones one for each
// note that decided it. An end that is gone takes its links with it.
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
