// The JSON of a note's revisions, in order.
COLLECT { MATCH (now)-[:REVISED]->(r) RETURN r.body ORDER BY r.seq }
