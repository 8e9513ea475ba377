-- Lists the activities of an instance. The caller removes each and then updates the head of its session.
SELECT seq FROM work WHERE key = ?1
