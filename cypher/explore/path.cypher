// The path between two things
// The shortest ways over notes and links from one thing to another.
// $one = "mustard"  what it is called, in small letters
// $other = "tystie"  the other
MATCH (one:Term {scope: $scope, name: $one}), (other:Term {scope: $scope, name: $other})
MATCH path = allShortestPaths((one)-[:HAS_TERM|RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM*..8]-(other))
RETURN path LIMIT 25
