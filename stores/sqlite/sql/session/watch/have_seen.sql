-- Notes that those who watch a session know of an attachment.
UPDATE watchers SET has_seen = 1 WHERE instance = ?1 AND session_id = ?2
