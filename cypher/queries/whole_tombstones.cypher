// The next tombstones.
MATCH (t:Tombstone)
WHERE t.scope = $scope AND t.identity > $after
RETURN t.identity AS identity ORDER BY identity LIMIT $limit
