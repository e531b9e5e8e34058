// What a language model answered.
MATCH (a:Answer {scope: $scope, key: $key})
RETURN a.text AS text
