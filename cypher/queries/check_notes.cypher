// Notes with their history and all derived data.
MATCH (now:Note)
WHERE now.scope = $scope AND now.seq > $after
WITH now ORDER BY now.seq LIMIT $limit
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
OPTIONAL MATCH (now)-[:FOUND_BY]->(i:Index)
WITH now, coalesce(b, now) AS n, i
RETURN now {.*, occurred_at: MICROS(now.occurred_at), valid_from: MICROS(now.valid_from),
    valid_to: MICROS(now.valid_to), expires_at: MICROS(now.expires_at), recorded_at: MICROS(now.recorded_at),
    occurrences: [time IN now.occurrences | MICROS(time)]} AS now,
  {{stored_note}} AS base,
  {{revisions}} AS revisions,
  properties(i) AS index,
  COLLECT { MATCH (now)-[h:HAS_TERM]->(t) RETURN [t.name, h.text, h.kind, h.count] } AS terms,
  COLLECT { MATCH (now)-[:TITLED]->(t) RETURN t.name } AS titles,
  COLLECT {
    MATCH (now)-[l:{{links}}]-()
    WHERE l.decided AND coalesce(l.owner, startNode(l).id) = now.id
    RETURN [startNode(l).id, endNode(l).id, type(l), l.weight, l.reason]
  } AS links,
  COLLECT { MATCH (now)-[:FROM]->(e) WHERE e.id IN now.event_ids RETURN e {.id, .place, .file} } AS events
ORDER BY now.seq
