// The changes of a principal: the notes and their versions.
MATCH (r:Revision {scope: $scope, principal: $principal})<-[:REVISED]-(n:Note)
RETURN n.id AS id, r.version AS version ORDER BY r.seq
