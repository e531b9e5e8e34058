// An exact index for vectors of one length.
CREATE VECTOR INDEX zettel_vectors_{{dim}} IF NOT EXISTS FOR (v:Vector{{dim}}) ON (v.embedding)
OPTIONS {indexConfig: {`vector.dimensions`: {{dim}}, `vector.similarity_function`: 'cosine',
  `vector.quantization.enabled`: false}}
