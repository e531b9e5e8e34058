// One hop of the walk: from [note, share] pairs in `leaving`, what is led to each note that is no start.
UNWIND leaving AS step
WITH step[0] AS from, step[1] AS share, starting
WHERE COUNT { (from)--() } <= $hub_links OR COUNT { (from)-[:{{links}}]-() } <= $hub_links
WITH collect([from, share]) AS leaving, starting
CALL (leaving) {
  UNWIND leaving AS step
  WITH step[0] AS from, step[1] AS share
  MATCH (from)-[l:{{links}}]-(n)
  WHERE {{seen}}
  RETURN n AS reached, l.weight * share AS led
  UNION ALL
  UNWIND leaving AS step
  WITH step[0] AS from, step[1] AS share
  MATCH (from)-[:HAS_TERM]->(t)
  WITH t, sum(share) AS share
  WITH t, share, {{holders}} AS df
  WHERE df > 1 AND df <= $rare_term_df
  MATCH (t)<-[:HAS_TERM]-(n)
  //: when as_of
  WHERE {{seen}}
  //: end
  RETURN n AS reached, share / (df * df) AS led
}
WITH reached, sum(led) AS led, starting
WHERE led > 0 AND NOT reached IN starting
