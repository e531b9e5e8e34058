// Which layout the database is in (null: none yet), and whether it holds nodes under our names.
OPTIONAL MATCH (z:Zettel {id: 'store'})
RETURN z.layout AS layout,
  COUNT { (:Note) } + COUNT { (:Event) } + COUNT { (:Term) } + COUNT { (:Scope) } + COUNT { (:Index) } > 0 AS others
