// Take notes out of the index: words, Terms, titles, and their part of their sessions. What no note holds any more goes. Tells how many notes that
// were shown, and how many tokens, the scope's statistics lose.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[:FOUND_BY]->(i:Index)
WHERE i.words IS NOT NULL
WITH collect(n) AS gone, collect(i) AS found, sum(i.length) AS tokens,
  collect(i.words) AS words
CALL (words) {
  UNWIND words AS some
  UNWIND split(some, ' ') AS word
  WITH word, count(*) AS times
  ORDER BY word
  MATCH (w:Word {scope: $scope, name: word})
  SET w.notes = w.notes - times
  WITH w WHERE w.notes <= 0
  DELETE w
}
CALL (found) {
  UNWIND found AS i
  WITH substring(left(i.place, 48), 32) AS name, sum(i.length) AS tokens
  WHERE name IS NOT NULL
  WITH name, tokens ORDER BY name
  MATCH (s:Session {scope: $scope, name: name})
  SET s.tokens = s.tokens - tokens
  WITH s WHERE s.tokens <= 0
  DELETE s
}
CALL (gone) {
  UNWIND gone AS n
  MATCH (n)-[held:HAS_TERM|TITLED]->(t:Term)
  WITH collect(held) AS links, collect(DISTINCT t) AS terms
  FOREACH (held IN links | DELETE held)
  WITH terms
  UNWIND terms AS t
  WITH t WHERE NOT EXISTS { (t)<-[:HAS_TERM|TITLED]-() }
  DELETE t
}
FOREACH (i IN found | SET i.words = null, i.often = null, i.length = null, i.titled = null, i.changed = $changes)
RETURN size(gone) AS notes, tokens
