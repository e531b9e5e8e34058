// Store new notes, each with the node that it is found by.
UNWIND $notes AS row
CREATE (n:Note)
SET n = row.note
CREATE (n)-[:FOUND_BY]->(i:Index)
SET i = row.index
