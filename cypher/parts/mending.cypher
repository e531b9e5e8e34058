// Bring the order of sessions right after events have gone: undated ones that stood by a dated one that is no more find
// their new place, their notes with them, and NEXT leads from each event to the one after it.
UNWIND sessions AS session
CALL (session, changes) {
  MATCH (e:Event)
  WHERE e.scope = $scope AND e.session = session AND e.seq >= 0 AND e.occurred_at IS NULL
  CALL (e) {
    MATCH (dated:Event)
    WHERE dated.scope = $scope AND dated.session = e.session AND dated.seq < e.seq AND dated.occurred_at IS NOT NULL
    WITH dated ORDER BY dated.seq DESC LIMIT 1
    RETURN collect(substring(dated.place, 48, 19)) AS stands
  }
  WITH e, changes, left(e.place, 48) + coalesce(stands[0], $never) + right(e.place, 12) AS place
  WHERE place <> e.place
  SET e.place = place
  WITH e, changes
  MATCH (e)<-[:FROM]-(n:Note)-[:FOUND_BY]->(i:Index)
  WHERE n.event_ids[0] = e.id AND i.place IS NOT NULL
  SET i.place = left(i.place, 48) + right(e.place, 31) + substring(i.place, 79), i.changed = changes
}
CALL (session) {
  MATCH (e:Event)
  WHERE e.scope = $scope AND e.session = session AND e.seq >= 0
  WITH e ORDER BY e.place
  WITH collect(e) AS events
  UNWIND range(0, size(events) - 2) AS at
  WITH events[at] AS e, events[at + 1] AS after
  OPTIONAL MATCH (e)-[old:NEXT]->(other) WHERE other <> after
  DELETE old
  MERGE (e)-[:NEXT]->(after)
}
