// The data that a write is planned on, see zettel.ports.LookupQuery.
MATCH (s:Scope {scope: $scope})
//: when identities
CALL (s) {
  UNWIND $identities AS identity
  MATCH (e:Event {scope: $scope, identity: identity})
  WITH identity, e ORDER BY e.seq DESC
  WITH identity, collect(e)[0] AS e
  RETURN collect({identity: identity, event: {{event}}, notes: COLLECT {
    MATCH (e)<-[:FROM]-(n:Note)
    OPTIONAL MATCH (n)-[:BEGAN_AS]->(b)
    WITH n, coalesce(b.kind, n.kind) AS kind
    WHERE kind = 'episodic'
    RETURN n.id ORDER BY coalesce(n.part, 0), n.seq
  }}) AS events
}
CALL (s) {
  UNWIND $identities AS identity
  MATCH (t:Tombstone {scope: $scope, identity: identity})
  RETURN collect(t.identity) AS tombstones
}
//: otherwise
WITH s, [] AS events, [] AS tombstones
//: end
//: when names
CALL (s) {
  UNWIND $names AS name
  MATCH (:Term {scope: $scope, name: name})<-[:TITLED]-(n:Note)
  WITH name, n ORDER BY n.seq
  RETURN collect([name, n.id]) AS named
}
//: otherwise
WITH *, [] AS named
//: end
//: when titles
CALL (s) {
  UNWIND $titles AS title
  CALL (title) {
    CALL db.index.fulltext.queryNodes('zettel_words', title.words) YIELD node AS i
    RETURN i.id AS id ORDER BY i.seq
  }
  RETURN collect([title.name, id]) AS naming
}
//: otherwise
WITH *, [] AS naming
//: end
//: when words
CALL (s) {
  UNWIND $words AS word
  MATCH (w:Word {scope: $scope, name: word})
  RETURN collect([word, w.notes]) AS df
}
//: otherwise
WITH *, [] AS df
//: end
RETURN events, tombstones, named, naming, df, s.notes AS notes,
  //: when state
  {{scope_state}},
  //: end
  EXISTS { MATCH (i:Index) WHERE i.titled = $scope } AS titled
