-- Has its lease end now, and lets go of it.
UPDATE {name}.instance_locks SET locked_until = {name}.now_ms(NULL);
COMMIT
