-- Finishes an activity that was leased, and says what that costs.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
SELECT * FROM {name}.finish_work_items('{{token}}', '{a}', '{done}', '{NULL}')
