// Values of candidates that depend on other notes: how many visible notes have each of these terms, and the end of the
// validity of each of these superseded notes.
CALL () {
  UNWIND $names AS name
  MATCH (t:Term {scope: $scope, name: name})
  RETURN collect([name, {{term_df}}]) AS df
}
CALL (df) {
  UNWIND $superseded AS id
  MATCH (n:Note {scope: $scope, id: id})<-[link:SUPERSEDES]-(newer)
  //: when as_of
  WHERE newer.valid_from IS NULL OR newer.valid_from <= $moment
  //: end
  WITH n, min(coalesce(MICROS(newer.valid_from), MICROS(link.recorded_at))) AS until
  RETURN collect([n.id, until]) AS valid_to
}
RETURN df, valid_to
