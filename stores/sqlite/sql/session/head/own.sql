-- Writes the owner of a session into its heads, because fetches look for heads by owner; `''` for no owner.
UPDATE heads SET owner = ?2 WHERE session = ?1
