// The next events with their identities.
MATCH (e:Event)
WHERE e.scope = $scope AND e.seq > $after
WITH e ORDER BY e.seq LIMIT $limit
RETURN e.seq AS seq, {{event}} AS event ORDER BY seq
