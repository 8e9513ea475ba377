-- Lists the heads of a session, one for each tag.
SELECT tag, head FROM heads WHERE session = ?1
