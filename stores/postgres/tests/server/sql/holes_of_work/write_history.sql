-- Appends an event of an instance that has no row.
INSERT INTO {name}.history (instance_id, execution_id, event_id, event_type, event_data, created_at) VALUES ('i', 1, 1, 'x', 'x', now())
