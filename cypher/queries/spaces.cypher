// All vector sets, oldest first.
MATCH (x:Space)
RETURN x.id AS id, x.name AS name, x.dim AS dim, x.fingerprint AS fingerprint, x.recipe AS recipe, x.active AS active
ORDER BY id
