// Why two notes are linked
// The links between them with their reasons, and the things that both are filed under.
// $one = "n_"  the id of a note, or how that begins
// $other = "n_"  the id of another
MATCH (one:Note {scope: $scope}), (other:Note {scope: $scope})
WHERE one.id STARTS WITH $one AND other.id STARTS WITH $other
      AND EXISTS { (one)-[:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]->(other) }
WITH one, other ORDER BY one.seq, other.seq LIMIT 1
MATCH (one)-[link:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]-(other)
OPTIONAL MATCH (one)-[has:HAS_TERM]->(shared:Term)<-[its:HAS_TERM]-(other)
RETURN one, link, other, has, shared, its
