-- Extends an attachment, by a fetch of its owner.
UPDATE sessions SET locked_until = ?2, last_activity = ?3 WHERE id = ?1
