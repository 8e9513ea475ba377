-- Begins a transaction that sends to it, and stays open.
BEGIN;
SELECT {name}.send_messages('{a}', '{y}', '{NULL}', '{false}', '{NULL}', NULL);
