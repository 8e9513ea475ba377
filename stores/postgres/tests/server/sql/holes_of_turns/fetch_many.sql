-- Fetches more than there is.
SELECT kind, again, next_ms FROM {name}.fetch_turns({now}, 30000, 3)
