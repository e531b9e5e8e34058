// Notes with seq above a number that pass the filter.
MATCH (n:Note)
WHERE n.scope = $scope AND n.seq > $after AND n.archived IS NULL
  AND {{filter}}
WITH n ORDER BY n.seq LIMIT $limit
RETURN {{note}} AS note ORDER BY n.seq
