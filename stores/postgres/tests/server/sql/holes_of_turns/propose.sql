-- Draws many ids, has a message become due later, and proposes how far the floors are raised.
SELECT count(nextval('{name}.orchestrator_queue_id_seq')) FROM generate_series(1, 3000);
SELECT {name}.send_messages('{stray}', '{x}', '{2}', '{false}', '{NULL}', 1000000);
SELECT {name}.read_floors(1000000);
