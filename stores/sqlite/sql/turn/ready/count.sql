-- Counts instances that could be leased, up to ?2 of each kind: ready ones, those with a message whose time
-- has come, and those whose lease has ended.
SELECT (SELECT count(*) FROM (SELECT 1 FROM instances WHERE turn = 1 LIMIT ?2))
    + (SELECT count(*) FROM (
        SELECT 1 FROM messages
        WHERE state = 0 AND visible_at <= ?1 AND seq NOT IN (SELECT row FROM torn_messages) LIMIT ?2
    ))
    + (SELECT count(*) FROM (SELECT 1 FROM instances WHERE turn = 2 AND locked_until <= ?1 LIMIT ?2))
