-- Writes into the trail of a session that it was claimed, from its row after the claim.
INSERT INTO session_trail (instance, session_id, epoch, is_end, owner, incarnation, at, change)
SELECT instance, session_id, epoch, 0, owner, incarnation, ?2, ?3 FROM sessions WHERE id = ?1
