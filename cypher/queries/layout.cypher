// The layout of the database (null if it is new), and true if it contains nodes with zettel's labels.
OPTIONAL MATCH (z:Zettel {id: 'store'})
RETURN z.layout AS layout,
  COUNT { (:Note) } + COUNT { (:Event) } + COUNT { (:Term) } + COUNT { (:Scope) } + COUNT { (:Index) } > 0 AS others
