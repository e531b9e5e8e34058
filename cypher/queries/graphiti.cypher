// The episodes, entities and facts of a Graphiti graph, without vectors.
MATCH (n:Episodic)
RETURN n {.uuid, .name, .group_id, .source, .source_description, .content,
  valid_at: toString(n.valid_at), created_at: toString(n.created_at)} AS item
UNION ALL
MATCH (n:Entity)
RETURN n {.uuid, .name, .group_id, .summary, labels: labels(n), created_at: toString(n.created_at)} AS item
UNION ALL
MATCH (a:Entity)-[r:RELATES_TO]->(b:Entity)
RETURN r {.uuid, .name, .group_id, .fact, .episodes, source_name: a.name, target_name: b.name,
  valid_at: toString(r.valid_at), invalid_at: toString(r.invalid_at),
  expired_at: toString(r.expired_at), created_at: toString(r.created_at)} AS item
