-- Lets the activities that were set aside where they are, torn, come back as rows of the rebuilt queue, with
-- the text ?1. What else is known of them is read by an index alone.
UPDATE set_aside
SET payload = ?1,
    torn = NULL,
    (instance, execution, activity) = (
        SELECT coalesce(set_aside.instance, instances.instance), work.execution, work.activity
        FROM work INDEXED BY work_identity
        LEFT JOIN instances ON instances.key = work.key
        WHERE work.seq = set_aside.torn
    )
WHERE queue = 1 AND torn IS NOT NULL
