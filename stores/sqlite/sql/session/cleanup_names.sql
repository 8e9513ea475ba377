-- Removes the rows of sessions that were closed or never claimed and that no work refers to.
DELETE FROM sessions WHERE is_row = 0 AND NOT EXISTS (SELECT 1 FROM work WHERE work.session = sessions.id
      AND work.seq NOT IN (SELECT row FROM torn_work))
