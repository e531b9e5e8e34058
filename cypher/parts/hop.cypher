// One hop of the walk: from the [note, share] pairs in `leaving`, the share that reaches each note outside `starting`.
UNWIND leaving AS step
WITH step[0] AS from, step[1] AS share, starting
WHERE COUNT { (from)--() } <= $hub_links OR COUNT { (from)-[:{{links}}]-() } <= $hub_links
WITH collect([from, share]) AS leaving, starting
CALL (leaving) {
  UNWIND leaving AS step
  WITH step[0] AS from, step[1] AS share
  MATCH (from)-[l:{{links}}]-(n)
  WHERE {{note_visible}}
  RETURN n AS reached, l.weight * share AS received
  UNION ALL
  UNWIND leaving AS step
  WITH step[0] AS from, step[1] AS share
  MATCH (from)-[:HAS_TERM]->(t)
  WITH t, sum(share) AS share
  WITH t, share, {{term_df}} AS df
  WHERE df > 1 AND df <= $rare_term_df
  MATCH (t)<-[:HAS_TERM]-(n)
  //: when as_of
  WHERE {{note_visible}}
  //: end
  RETURN n AS reached, share / (df * df) AS received
}
WITH reached, sum(received) AS received, starting
WHERE received > 0 AND NOT reached IN starting
