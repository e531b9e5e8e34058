// Store events. `place` orders the events of a session: a dated one stands where it occurred, an undated one where the
// last dated one of its session that arrived before it stands, or first; `leading` names the sessions whose first events
// of this batch are undated. NEXT leads from each event of a session to the one after it; this tells of the sessions
// where older events stand between the new ones, for their chains must be mended.
//: when leading
CALL () {
  UNWIND $leading AS session
  CALL (session) {
    MATCH (e:Event)
    WHERE e.scope = $scope AND e.session = session.name AND e.seq < session.seq
    RETURN e.place AS place ORDER BY e.seq DESC LIMIT 1
  }
  RETURN collect({session: session.name, stands: substring(place, 48, 19)}) AS known
}
//: end
UNWIND $events AS row
//: when leading
WITH row, coalesce(row.stands, [one IN known WHERE one.session = row.event.session | one.stands][0], $never) AS stands
//: otherwise
WITH row, row.stands AS stands
//: end
CREATE (e:Event)
SET e = row.event, e.place = row.prefix + stands + row.arrived
WITH e ORDER BY e.place
WITH e.session AS session, collect(e) AS said
WHERE session IS NOT NULL
WITH session, said, head(said) AS first, last(said) AS final
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
  RETURN count(e) AS there
}
WITH session, before + said + after AS chain, before, after, there = size(said) AS alone
CALL (before, after, alone) {
  UNWIND CASE WHEN alone THEN before ELSE [] END AS one
  MATCH (one)-[old:NEXT]->(other) WHERE other IN after
  DELETE old
}
CALL (chain, alone) {
  UNWIND CASE WHEN alone THEN range(0, size(chain) - 2) ELSE [] END AS at
  WITH chain[at] AS one, chain[at + 1] AS other
  CREATE (one)-[:NEXT]->(other)
}
RETURN collect(CASE WHEN NOT alone THEN session END) AS sessions
