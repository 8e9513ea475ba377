-- Finishes the activity that was leased, and says what that costs.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
SELECT * FROM {name}.finish_work_items(ARRAY[(
    SELECT w.lock_token FROM {name}.worker_queue AS w
    WHERE w.instance_id = 'a' AND w.execution_id = 1 AND w.lock_token IS NOT NULL
)], '{a}', '{done}', '{NULL}')
