// The values of the notes of `indexes` that do not depend on the question: `fields` in the order of
// `candidates.NoteFields`, the links, the terms of the pool (those that the question names, and rare ones that two of
// its notes have, each with its number of visible notes), and the end of the validity of superseded notes.
CALL (indexes) {
  UNWIND range(0, size(indexes) - 1) AS place
  WITH place, indexes[place] AS i
  MATCH (i)<-[:FOUND_BY]-(n)
  OPTIONAL MATCH (n)-[:HAS_VECTOR]->(v) WHERE v.space = $space
  RETURN collect([place, i.row, i.length, v.code]) AS fields, collect([place, n]) AS numbered,
    collect(CASE WHEN i.superseded THEN [place, n] END) AS superseded
}
CALL (numbered) {
  UNWIND numbered AS note
  WITH note[0] AS place, note[1] AS n
  MATCH (n)-[l:{{links}}]->(target)
  RETURN collect([place, target.seq, type(l), l.weight]) AS links
}
CALL (numbered, pool) {
  UNWIND numbered AS note
  WITH note[0] AS place, note[1] AS n
  WHERE pool[place] = 1
  MATCH (n)-[:HAS_TERM]->(t)
  WITH t, collect(place) AS places
  WITH t, t.name AS name, places
  WHERE size(places) > 1 OR name IN $names
  WITH name, places, {{term_df}} AS df
  WHERE df > 0 AND (df <= $rare_term_df OR name IN $names)
  RETURN collect([name, df, places]) AS terms
}
CALL (superseded) {
  UNWIND superseded AS note
  WITH note[0] AS place, note[1] AS n
  MATCH (n)<-[link:SUPERSEDES]-(newer)
  //: when as_of
  WHERE newer.valid_from IS NULL OR newer.valid_from <= $moment
  //: end
  WITH place, min(coalesce(MICROS(newer.valid_from), MICROS(link.recorded_at))) AS until
  RETURN collect([place, until]) AS ends
}
