-- Writes the owner of a session into its heads, because fetches look for heads by owner; `''` for no owner.
-- Heads of routed work and of work with terms have a mark in front of it.
UPDATE heads
SET owner = CASE WHEN tag < '>' THEN '' WHEN substr(tag, 1, 2) = '>+' THEN '+' ELSE '>' END || ?2
WHERE session = ?1
