// The next events with the notes that cite them, in order of arrival.
MATCH (e:Event)
WHERE e.scope = $scope AND e.seq > $after
WITH e ORDER BY e.seq LIMIT $limit
RETURN {{event}} AS event, COLLECT {
  MATCH (e)<-[:FROM]-(n:Note)
  WHERE e.id IN n.event_ids
  RETURN {{note}} ORDER BY n.seq
} AS notes
ORDER BY e.seq
