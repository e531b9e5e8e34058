// Put new events into the chain of NEXT, session by session. Tells of the sessions where others stand between them: their
// chains must be mended.
UNWIND $runs AS run
CALL (run) {
  UNWIND run.ids AS id
  MATCH (e:Event {scope: $scope, id: id})
  WITH e ORDER BY e.place
  RETURN collect(e) AS said
}
WITH run, said, head(said) AS first, last(said) AS final
CALL (first) {
  MATCH (e:Event)
  WHERE e.place > left(first.place, 48) AND e.place < first.place
  WITH e ORDER BY e.place DESC LIMIT 1
  RETURN collect(e) AS before
}
CALL (final) {
  MATCH (e:Event)
  WHERE e.place > final.place AND e.place < left(final.place, 48) + '~'
  WITH e ORDER BY e.place LIMIT 1
  RETURN collect(e) AS after
}
CALL (first, final) {
  MATCH (e:Event)
  WHERE e.place >= first.place AND e.place <= final.place
  RETURN count(e) AS there
}
WITH run, before + said + after AS chain, before, after, there = size(said) AS alone
CALL (before, after, alone) {
  UNWIND CASE WHEN alone THEN before ELSE [] END AS one
  MATCH (one)-[old:NEXT]->(other) WHERE other IN after
  DELETE old
}
CALL (chain, alone) {
  UNWIND CASE WHEN alone THEN range(0, size(chain) - 2) ELSE [] END AS at
  WITH chain[at] AS one, chain[at + 1] AS other
  CREATE (one)-[:NEXT]->(other)
}
RETURN collect(CASE WHEN NOT alone THEN run.session END) AS sessions
