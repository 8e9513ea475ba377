-- Appends an event (S8).
INSERT INTO history (key, execution, event_id, kind, event) VALUES (?1, ?2, ?3, ?4, ?5)
