-- Takes the use of a fetch that was dropped off the claim ?2 of a session. Returns how many uses are left; no
-- row if the session was claimed again since.
UPDATE sessions SET uses = uses - 1 WHERE id = ?1 AND epoch = ?2 RETURNING uses
