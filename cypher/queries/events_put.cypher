// Store events. `place` orders the events of a session: a dated one stands where it occurred, an undated one where the
// last dated one of its session that arrived before it stands, or first; `leading` names the sessions whose first events
// of this batch are undated.
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
