-- Says that this process listens no longer.
DELETE FROM {schema}.listeners WHERE id = $1
