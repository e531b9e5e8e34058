// Orphans
// Notes without a link to another, the oldest first: what a search finds by its own words only.
// $most = 100  how many
MATCH (note:Note {scope: $scope})
WHERE note.archived IS NULL AND NOT EXISTS { (note)-[:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]-(:Note) }
RETURN note.occurred_at AS occurred_at, note.role AS speaker, note.content AS content, note.id AS id
ORDER BY note.seq LIMIT $most
