// An index for vectors of one size that looks only at one scope, and whose scores are exact.
CYPHER 25
CREATE VECTOR INDEX zettel_vectors_{{dim}} IF NOT EXISTS FOR (v:Vector{{dim}}) ON (v.embedding)
WITH [v.scope, v.space, v.shown]
OPTIONS {indexConfig: {`vector.dimensions`: {{dim}}, `vector.similarity_function`: 'cosine',
  `vector.quantization.enabled`: false}}
