// Create a vector set; the first one is active. The caller has locked the store.
MATCH (z:Zettel {id: 'store'})
SET z.spaces = coalesce(z.spaces, 0) + 1
CREATE (x:Space {id: z.spaces, name: $name, dim: $dim, fingerprint: $fingerprint, recipe: $recipe, active: $active})
