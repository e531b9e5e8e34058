// Remove notes from the index: words, terms, titles, session lengths. Delete terms, words and sessions without notes.
// Returns how many notes and tokens the scope's sums lose.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[:FOUND_BY]->(i:Index)
WHERE i.words IS NOT NULL
WITH collect(n) AS dropped, collect(i) AS indexes, sum(i.length) AS tokens,
  collect(i.words) AS words
CALL (words) {
  UNWIND words AS list
  UNWIND split(list, ' ') AS word
  WITH word, count(*) AS times
  ORDER BY word
  MATCH (w:Word {scope: $scope, name: word})
  SET w.notes = w.notes - times
  WITH w WHERE w.notes <= 0
  DELETE w
}
CALL (indexes) {
  UNWIND indexes AS i
  WITH substring(left(i.place, 48), 32) AS name, sum(i.length) AS tokens
  WHERE name IS NOT NULL
  WITH name, tokens ORDER BY name
  MATCH (s:Session {scope: $scope, name: name})
  SET s.tokens = s.tokens - tokens
  WITH s WHERE s.tokens <= 0
  DELETE s
}
CALL (dropped) {
  UNWIND dropped AS n
  MATCH (n)-[use:HAS_TERM|TITLED]->(t:Term)
  WITH collect(use) AS uses, collect(DISTINCT t) AS terms
  FOREACH (use IN uses | DELETE use)
  WITH terms
  UNWIND terms AS t
  WITH t WHERE NOT EXISTS { (t)<-[:HAS_TERM|TITLED]-() }
  DELETE t
}
FOREACH (i IN indexes | SET i.words = null, i.often = null, i.length = null, i.titled = null, i.changed = $changes)
RETURN size(dropped) AS notes, tokens
