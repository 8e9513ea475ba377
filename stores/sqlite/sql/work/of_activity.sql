-- Lists the work rows of one scheduled activity (S12).
SELECT seq FROM work WHERE key = ?1 AND execution = ?2 AND activity = ?3
