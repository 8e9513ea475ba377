-- Writes the owner of a session into its heads, by which fetches find its work.
UPDATE heads SET owner = ?2 WHERE session = ?1
