// Notes that cite one of these events in any version.
UNWIND $ids AS id
MATCH (:Event {scope: $scope, id: id})<-[:FROM]-(n:Note)
WITH DISTINCT n
RETURN n.id AS id ORDER BY n.seq
