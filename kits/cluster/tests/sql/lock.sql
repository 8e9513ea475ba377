-- Begins a transaction that stays in everybody's way.
BEGIN; LOCK TABLE "{name}".kept IN ACCESS EXCLUSIVE MODE
