// Say which events notes rest on, and where they stand in their sessions; how many of the notes and of the events there
// are.
UNWIND $notes AS row
MATCH (n:Note {scope: $scope, id: row.id})-[:FOUND_BY]->(i:Index)
CALL (n, row) {
  UNWIND row.events AS id
  MATCH (e:Event {scope: $scope, id: id})
  MERGE (n)-[:FROM]->(e)
  RETURN collect({id: e.id, place: e.place}) AS events, collect(DISTINCT e.file) AS files
}
SET n.files = CASE WHEN size(files) > 0 THEN files END,
  i.valid_from = row.valid_from, i.asks = row.asks,
  i.place = row.prefix + right([one IN events WHERE one.id = row.events[0] | one.place][0], 31) + row.part
RETURN count(n) AS notes, sum(size(events)) AS events
