// Replace a logged search, for example with its feedback.
MATCH (x:Search {scope: $scope, id: $search.id})
SET x = $search
