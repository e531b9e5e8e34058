// The places and source files of a scope's events.
MATCH (e:Event)
WHERE e.scope = $scope AND e.seq >= 0
RETURN e.id AS id, right(e.place, 31) AS place, e.file AS file
