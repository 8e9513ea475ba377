-- Leases an instance, after a while.
SELECT kind, items FROM {name}.fetch_turns({name}.now_ms(NULL) + {while}, 30000, 1)
