// Where the events of a scope stand in their sessions, and which files they were read from.
MATCH (e:Event)
WHERE e.scope = $scope AND e.seq >= 0
RETURN e.id AS id, right(e.place, 31) AS place, e.file AS file
