// What binds the notes of a question and changes with others: how many visible notes hold each of these Terms, and since
// when each of these notes, which were replaced, is no longer valid.
CALL () {
  UNWIND $names AS name
  MATCH (t:Term {scope: $scope, name: name})
  RETURN collect([name, {{holders}}]) AS holders
}
CALL (holders) {
  UNWIND $replaced AS id
  MATCH (n:Note {scope: $scope, id: id})<-[how:SUPERSEDES]-(newer)
  //: when as_of
  WHERE newer.valid_from IS NULL OR newer.valid_from <= $moment
  //: end
  WITH n, min(coalesce(MICROS(newer.valid_from), MICROS(how.recorded_at))) AS since
  RETURN collect([n.id, since]) AS ends
}
RETURN holders, ends
