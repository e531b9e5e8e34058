// Contradictions
// Notes that contradict or supersede each other.
// $most = 100  maximum number of pairs
MATCH (newer:Note {scope: $scope})-[link:CONTRADICTS|SUPERSEDES]->(older:Note {scope: $scope})
RETURN newer, link, older
ORDER BY link.recorded_at DESC LIMIT $most
