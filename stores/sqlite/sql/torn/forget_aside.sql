-- Removes what was set aside of the message ?1, because the turn that was given it has consumed it.
DELETE FROM set_aside WHERE queue = 0 AND torn = ?1
