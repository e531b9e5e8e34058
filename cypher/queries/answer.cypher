// The cached answer of a language model.
MATCH (a:Answer {scope: $scope, key: $key})
RETURN a.text AS text
