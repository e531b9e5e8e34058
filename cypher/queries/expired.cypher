// Unarchived, or archived, notes that expire up to a time, after a position, by (expires_at, seq).
MATCH (n:Note)
WHERE n.scope = $scope AND n.expires_at <= $until AND n.expires_at >= $at AND n.id IS NOT NULL
  AND coalesce(n.archived, false) = $archived
  AND (n.expires_at > $at OR n.seq > $seq)
WITH n ORDER BY n.expires_at, n.seq LIMIT $limit
RETURN {{note}} AS note ORDER BY n.expires_at, n.seq
