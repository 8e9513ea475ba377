-- Lists rows that are looked at again, in a bounded batch.
SELECT row, key FROM torn_work WHERE until <= ?1 ORDER BY until LIMIT ?2
