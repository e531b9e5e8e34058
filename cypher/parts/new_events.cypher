// Create events, and link each session in time order with NEXT. `place` sorts a session's events: by time, then arrival.
// An undated event takes the time of the last dated event that arrived before it, or $never. $undated lists the sessions
// whose first event of this batch is undated. Returns the sessions where older events lie between new ones: their NEXT
// relationships need a repair.
//: when undated
CALL () {
  UNWIND $undated AS session
  CALL (session) {
    MATCH (e:Event)
    WHERE e.scope = $scope AND e.session = session.name AND e.seq < session.seq
    RETURN e.place AS place ORDER BY e.seq DESC LIMIT 1
  }
  RETURN collect({session: session.name, time: substring(place, 48, 19)}) AS known
}
//: end
UNWIND $events AS row
//: when undated
WITH row, coalesce(row.time, [x IN known WHERE x.session = row.event.session | x.time][0], $never) AS time
//: otherwise
WITH row, row.time AS time
//: end
CREATE (e:Event)
SET e = row.event, e.place = row.prefix + time + row.arrival
WITH e ORDER BY e.place
WITH e.session AS session, collect(e) AS new
WHERE session IS NOT NULL
WITH session, new, head(new) AS first, last(new) AS final
CALL (first) {
  MATCH (e:Event)
  WHERE e.place > left(first.place, 48) AND e.place < first.place
  WITH e ORDER BY e.place DESC LIMIT 1
  RETURN collect(e) AS before
}
CALL (final) {
  MATCH (e:Event)
  WHERE e.place > final.place AND e.place < left(final.place, 48) + '~'
  WITH e ORDER BY e.place LIMIT 1
  RETURN collect(e) AS after
}
CALL (first, final) {
  MATCH (e:Event)
  WHERE e.place >= first.place AND e.place <= final.place
  RETURN count(e) AS between
}
WITH session, before + new + after AS chain, before, after, between = size(new) AS contiguous
CALL (before, after, contiguous) {
  UNWIND CASE WHEN contiguous THEN before ELSE [] END AS event
  MATCH (event)-[old:NEXT]->(other) WHERE other IN after
  DELETE old
}
CALL (chain, contiguous) {
  UNWIND CASE WHEN contiguous THEN range(0, size(chain) - 2) ELSE [] END AS at
  WITH chain[at] AS event, chain[at + 1] AS other
  CREATE (event)-[:NEXT]->(other)
}
RETURN collect(CASE WHEN NOT contiguous THEN session END) AS sessions
