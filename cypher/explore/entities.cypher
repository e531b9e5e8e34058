// Entities
// Persons, organisations, places and things that the notes name, and those named together with them.
// $name = ""  a name in lower case, or its beginning; empty: all names
// $most = 60  maximum number of pairs
MATCH (entity:Term {scope: $scope})<-[has:HAS_TERM]-(note:Note)
WHERE entity.name STARTS WITH $name AND has.kind IN ["name", "speaker"] AND note.archived IS NULL
MATCH (note)-[named:HAS_TERM]->(other:Term)
WHERE named.kind IN ["name", "speaker"] AND other <> entity
WITH entity, other, collect(DISTINCT note) AS notes ORDER BY size(notes) DESC, other.name LIMIT $most
UNWIND notes AS note
MATCH (entity)<-[has:HAS_TERM]-(note)-[named:HAS_TERM]->(other)
RETURN entity, has, note, named, other
