-- Gives up the activities of a session that cannot be read, because the session is closed.
UPDATE torn_work SET until = NULL WHERE row IN (SELECT seq FROM work WHERE session = ?1)
