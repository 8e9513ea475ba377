-- Counts what is live, by indexes that hold nothing else: running instances, messages, activities.
SELECT
    (SELECT count(*) FROM instances WHERE name IS NOT NULL AND ended_at IS NULL),
    (SELECT count(*) FROM messages),
    (SELECT count(*) FROM work)
