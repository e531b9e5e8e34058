// Restore the order of sessions after events were deleted: move undated events that followed a deleted dated event,
// together with their notes, and link each event to the next one with NEXT.
UNWIND sessions AS session
CALL (session, changes) {
  WITH [{seq: -1, time: $never}] + COLLECT {
    MATCH (e:Event)
    USING INDEX SEEK e:Event(scope, session, seq)
    WHERE e.scope = $scope AND e.session = session AND e.seq >= 0 AND e.occurred_at IS NOT NULL
    RETURN e {.seq, time: substring(e.place, 48, 19)} ORDER BY e.seq
  } AS dated
  UNWIND range(0, size(dated) - 1) AS at
  WITH dated[at] AS last, coalesce(dated[at + 1].seq, 9223372036854775807) AS next
  MATCH (e:Event)
  USING INDEX SEEK e:Event(scope, session, seq)
  WHERE e.scope = $scope AND e.session = session AND e.seq > last.seq AND e.seq < next AND e.occurred_at IS NULL
  WITH e, left(e.place, 48) + last.time + right(e.place, 12) AS place
  WHERE place <> e.place
  SET e.place = place
  WITH e
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
