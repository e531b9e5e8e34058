// The path between two terms
// The shortest paths over notes and links from one term to another.
// $one = "mustard"  name of the first term, in lower case
// $other = "tystie"  name of the second term, in lower case
MATCH (one:Term {scope: $scope, name: $one}), (other:Term {scope: $scope, name: $other})
MATCH path = allShortestPaths((one)-[:HAS_TERM|RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM*..8]-(other))
RETURN path LIMIT 25
