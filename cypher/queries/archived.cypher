// Archived notes with seq below a number, newest first.
MATCH (n:Note)
USING INDEX n:Note(scope, archived)
WHERE n.scope = $scope AND n.archived = true AND n.seq < $before
WITH n ORDER BY n.seq DESC LIMIT $limit
RETURN {{note}} AS note ORDER BY n.seq DESC
