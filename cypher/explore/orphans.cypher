// Orphans
// Notes without links, oldest first. A search finds them by their own words only.
// $most = 100  maximum number of notes
MATCH (note:Note {scope: $scope})
WHERE note.archived IS NULL AND NOT EXISTS { (note)-[:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]-(:Note) }
RETURN note.occurred_at AS occurred_at, note.speaker AS speaker, note.content AS content, note.id AS id
ORDER BY note.seq LIMIT $most
