// Delete a page of each kind of a scope's nodes. Returns true if no nodes remain. A deleted node takes its
// relationships along, so nodes with very many come last: hub notes after other notes, then terms.
CALL () { MATCH (x:Job) WHERE x.scope = $scope AND x.id IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS jobs }
CALL () { MATCH (x:Answer) WHERE x.scope = $scope AND x.key IS NOT NULL WITH x LIMIT $answers DETACH DELETE x RETURN count(*) AS answers }
CALL () { MATCH (x:Search) WHERE x.scope = $scope AND x.id IS NOT NULL WITH x LIMIT $answers DETACH DELETE x RETURN count(*) AS searches }
CALL () { MATCH (x:Usage) WHERE x.scope = $scope AND x.note IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS usages }
CALL () { MATCH (x:Use) WHERE x.scope = $scope AND x.day IS NOT NULL AND x.model IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS uses }
CALL () { MATCH (x:Revision) WHERE x.scope = $scope AND x.id IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS revisions }
CALL () {
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.id IS NOT NULL AND COUNT { (n)<--() } < $hub
  WITH n LIMIT $page
  OPTIONAL MATCH (n)-[:BEGAN_AS]->(b)
  DETACH DELETE b, n
  RETURN count(*) AS notes
}
CALL (answers, searches, revisions, notes) {
  WITH * WHERE answers < $answers AND searches < $answers AND revisions < $page AND notes < $page
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.id IS NOT NULL
  WITH n LIMIT $page
  OPTIONAL MATCH (n)-[:BEGAN_AS]->(b)
  DETACH DELETE b, n
  RETURN count(*) AS hubs
}
CALL () { MATCH (x:Event) WHERE x.scope = $scope AND x.id IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS events }
CALL () { MATCH (x:Index) WHERE x.scope = $scope AND x.id IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS indexes }
CALL () { MATCH (x:Vector) WHERE x.scope = $scope AND x.id IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS vectors }
CALL () { MATCH (x:Word) WHERE x.scope = $scope AND x.name IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS words }
CALL () { MATCH (x:Session) WHERE x.scope = $scope AND x.name IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS sessions }
CALL () { MATCH (x:Tombstone) WHERE x.scope = $scope AND x.identity IS NOT NULL WITH x LIMIT $page DETACH DELETE x RETURN count(*) AS tombstones }
CALL (revisions, notes, hubs) {
  WITH * WHERE revisions < $page AND notes < $page AND hubs < $page
  MATCH (x:Term)
  WHERE x.scope = $scope AND x.name IS NOT NULL
  WITH x LIMIT $page
  DETACH DELETE x
  RETURN count(*) AS terms
}
RETURN answers < $answers AND searches < $answers
  AND all(count IN [jobs, uses, usages, revisions, notes, hubs, events, indexes, vectors, words, sessions, tombstones, terms] WHERE count < $page) AS done
