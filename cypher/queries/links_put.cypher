// Store links of one type; of the derived ones (MENTIONS) there is one between two notes. An end that is gone takes its
// links with it.
UNWIND $links AS row
MATCH (source:Note {scope: $scope, id: row.source})
CALL (source, row) {
  MATCH (target:Note {scope: $scope, id: row.target})
  MERGE (source)-[l:{{type}} {decided: row.decided}]->(target)
  SET l += row.link
}
