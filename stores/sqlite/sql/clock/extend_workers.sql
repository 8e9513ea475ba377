-- Keeps workers live over a jump of the time: those that were live at ?1 count as seen ?2 later (S21).
UPDATE workers SET last_seen = last_seen + ?2 WHERE is_listed = 1 AND last_seen > ?1 - 60000
