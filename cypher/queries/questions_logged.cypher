// The question of each logged search.
MATCH (x:Search)
WHERE x.scope = $scope AND x.id IS NOT NULL
RETURN x.id AS id, x.question AS question
