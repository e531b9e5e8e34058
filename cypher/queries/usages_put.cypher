// Set what feedback says of notes; nothing is said of one that was never of use.
UNWIND $usages AS told
MATCH (n:Note {scope: $scope, id: told.note})
CALL (n) {
  MATCH (n)-[:USED]->(u:Usage)
  DETACH DELETE u
}
FOREACH (usage IN told.usage | CREATE (n)-[:USED]->(u:Usage) SET u = usage)
RETURN count(n) AS notes
