-- Brings the floors to rest, draws so many ids that they are about to be raised beyond all that there is, and puts off the look
-- below them.
UPDATE {name}.floors SET healed_ms = {now}, at_ms = {now}, drawn = -10000, cycle = NULL, horizon = NULL,
    next_turns = NULL, next_work = NULL, next_heads = NULL, next_due_messages = NULL, next_leased_turns = NULL,
    next_due_work = NULL, next_leased_work = NULL, next_held_sessions = NULL,
    turn_ms = 30000, work_ms = 30000, session_ms = 30000;
SELECT max(nextval('{name}.orchestrator_queue_id_seq') + nextval('{name}.worker_queue_id_seq')) FROM generate_series(1, 2000);
