// Notes past a place in the order of arrival that the filter lets through.
MATCH (n:Note)
WHERE n.scope = $scope AND n.seq > $after AND n.archived IS NULL
  AND {{allowed}}
WITH n ORDER BY n.seq LIMIT $limit
RETURN {{note}} AS note ORDER BY n.seq
