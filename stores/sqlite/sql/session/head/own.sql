-- Writes the owner of a session into its heads, because fetches look for heads by owner; `''` for no owner.
-- '>' stands in front of the owner of the head of a routed activity.
UPDATE heads SET owner = iif(tag >= '>', '>', '') || ?2 WHERE session = ?1
