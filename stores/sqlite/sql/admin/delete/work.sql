-- Lists the activities of an instance, so that each can be removed with its place in line.
SELECT seq FROM work WHERE key = ?1
