-- Lists leased activities that are not known to be torn, and the ends of their leases, by an index alone.
SELECT seq, locked_until FROM work WHERE state = 2 AND locked_until >= 0
  AND seq NOT IN (SELECT row FROM torn_work)
