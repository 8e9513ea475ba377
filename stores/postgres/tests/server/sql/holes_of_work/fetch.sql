-- Leases activities, for an owner also those of sessions.
SELECT item, token, claim FROM {name}.fetch_work_items({count}, {tags}, array_fill('w'::text, ARRAY[{count}]), {lock}, {owner},
    {start}, {lock}, {owner} IS NOT NULL, p_now_ms => {now})
WHERE kind = 'lease' ORDER BY place
