// Make notes found by their words, Terms and titles; all Terms are there.
UNWIND $notes AS row
MATCH (n:Note {scope: $scope, id: row.id})-[:FOUND_BY]->(i:Index)
SET i.words = row.words, i.often = row.often, i.length = row.length, i.titled = row.titled
WITH n, row
CALL (n, row) {
  UNWIND row.terms AS term
  MATCH (t:Term {scope: $scope, name: term.name})
  CREATE (n)-[:HAS_TERM {count: term.count, text: term.text, kind: term.kind}]->(t)
}
CALL (n, row) {
  UNWIND row.titles AS title
  MATCH (t:Term {scope: $scope, name: title})
  CREATE (n)-[:TITLED]->(t)
}
