-- Tells whether an index has an activity, whose row is not there.
SELECT EXISTS (SELECT 1 FROM work INDEXED BY work_identity WHERE seq = ?1)
