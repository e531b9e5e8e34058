// Destroy the answers to questions in which text of these notes stands.
UNWIND $ids AS id
MATCH (:Note {scope: $scope, id: id})<-[:ASKED_ABOUT]-(a:Answer)
WITH DISTINCT a
DETACH DELETE a
