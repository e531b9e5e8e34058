// Ids of the unarchived notes that expired up to a time.
MATCH (n:Note)
WHERE n.scope = $scope AND n.expires_at <= $until AND n.archived IS NULL AND n.id IS NOT NULL
RETURN collect(n.id) AS ids
