-- Lists the heads that stand at an activity.
SELECT session, tag FROM heads WHERE head = ?1
