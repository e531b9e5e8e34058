// The next logged searches by (asked_at, id).
MATCH (x:Search)
WHERE x.scope = $scope AND x.asked_at >= $asked_at AND x.id IS NOT NULL AND (x.asked_at > $asked_at OR x.id > $id)
RETURN x.body AS body ORDER BY x.asked_at, x.id LIMIT $limit
