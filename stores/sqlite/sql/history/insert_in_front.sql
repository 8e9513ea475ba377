-- Appends an event (S8) in front of all others in the table, because the last leaf of it is torn. Events are
-- found by index, so their place in the table does not matter.
INSERT INTO history (seq, key, execution, event_id, kind, event)
VALUES ((SELECT coalesce(min(seq), 0) - 1 FROM history), ?1, ?2, ?3, ?4, ?5)
