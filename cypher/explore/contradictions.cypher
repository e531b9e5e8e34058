// What contradicts what
// Notes that cannot both be true, and notes that took the place of others.
// $most = 100  how many pairs
MATCH (newer:Note {scope: $scope})-[link:CONTRADICTS|SUPERSEDES]->(older:Note {scope: $scope})
RETURN newer, link, older
ORDER BY link.recorded_at DESC LIMIT $most
