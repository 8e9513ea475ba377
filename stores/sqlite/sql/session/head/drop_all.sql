-- A session has no ready activity.
DELETE FROM heads WHERE session = ?1
