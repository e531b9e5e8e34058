// The links between two notes
// All links between two notes with their reasons, and the terms that both have.
// $one = "n_"  id of the first note, or its beginning
// $other = "n_"  id of the second note, or its beginning
MATCH (one:Note {scope: $scope}), (other:Note {scope: $scope})
WHERE one.id STARTS WITH $one AND other.id STARTS WITH $other
      AND EXISTS { (one)-[:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]->(other) }
WITH one, other ORDER BY one.seq, other.seq LIMIT 1
MATCH (one)-[link:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]-(other)
OPTIONAL MATCH (one)-[has:HAS_TERM]->(shared:Term)<-[its:HAS_TERM]-(other)
RETURN one, link, other, has, shared, its
