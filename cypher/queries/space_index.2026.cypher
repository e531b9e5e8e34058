// An exact index for vectors of one length that can search in one scope.
CYPHER 25
CREATE VECTOR INDEX zettel_vectors_{{dim}} IF NOT EXISTS FOR (v:Vector{{dim}}) ON (v.embedding)
WITH [v.scope, v.space, v.shown]
OPTIONS {indexConfig: {`vector.dimensions`: {{dim}}, `vector.similarity_function`: 'cosine',
  `vector.quantization.enabled`: false}}
