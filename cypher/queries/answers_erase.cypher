// Delete the answers to questions that contain text of these notes.
UNWIND $ids AS id
MATCH (:Note {scope: $scope, id: id})<-[:ASKED_ABOUT]-(a:Answer)
WITH DISTINCT a
DETACH DELETE a
