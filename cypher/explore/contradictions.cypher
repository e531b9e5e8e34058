// Contradictions
// Notes that contradict, supersede or update each other.
// $most = 100  maximum number of pairs
MATCH (newer:Note {scope: $scope})-[link:CONTRADICTS|SUPERSEDES|UPDATES]->(older:Note {scope: $scope})
RETURN newer, link, older
ORDER BY link.recorded_at DESC LIMIT $most
