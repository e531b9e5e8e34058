// Fill the index nodes `indexes` of `notes`: events, places in sessions, terms, word counts, session lengths. All lists
// are sorted by name, so that two writers do not deadlock.
CALL (notes, indexes, changes) {
  UNWIND range(0, size($notes) - 1) AS at
  WITH notes[at] AS n, indexes[at] AS i, $notes[at] AS row, changes
  SET i += row.index, i.changed = changes
  WITH n, i, row
  CALL (n, row) {
    UNWIND row.events AS id
    MATCH (e:Event {scope: $scope, id: id})
    MERGE (n)-[:FROM]->(e)
    RETURN collect({id: e.id, place: e.place}) AS events, collect(DISTINCT e.file) AS files
  }
  SET n.files = CASE WHEN size(files) > 0 THEN files END,
    i.place = row.prefix + right([e IN events WHERE e.id = row.events[0] | e.place][0], 31) + row.part
  RETURN sum(size(events)) AS events
}
CALL (notes) {
  UNWIND $terms AS term
  MERGE (t:Term {scope: $scope, name: term.name})
  WITH notes, t, term
  CALL (notes, t, term) {
    UNWIND term.uses AS use
    WITH notes[use.note] AS n, t, use
    CREATE (n)-[:HAS_TERM {count: use.count, text: use.text, kind: use.kind}]->(t)
  }
  CALL (notes, t, term) {
    UNWIND term.titles AS note
    WITH notes[note] AS n, t
    CREATE (n)-[:TITLED]->(t)
  }
}
CALL () {
  UNWIND $words AS word
  MERGE (w:Word {scope: $scope, name: word.name})
  ON CREATE SET w.notes = word.notes
  ON MATCH SET w.notes = w.notes + word.notes
}
CALL () {
  UNWIND $sessions AS session
  MERGE (s:Session {scope: $scope, name: session.name})
  ON CREATE SET s.tokens = session.tokens
  ON MATCH SET s.tokens = s.tokens + session.tokens
}
