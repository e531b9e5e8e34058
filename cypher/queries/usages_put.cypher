// Set the feedback on notes; a note that was never used has no Usage node.
UNWIND $usages AS row
MATCH (n:Note {scope: $scope, id: row.note})
CALL (n) {
  MATCH (n)-[:USED]->(u:Usage)
  DETACH DELETE u
}
FOREACH (usage IN row.usage | CREATE (n)-[:USED]->(u:Usage) SET u = usage)
RETURN count(n) AS notes
