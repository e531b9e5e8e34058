// Store the layout of the database.
MERGE (z:Zettel {id: 'store'})
SET z.layout = CASE WHEN coalesce(z.layout, 0) < $layout THEN $layout ELSE z.layout END
