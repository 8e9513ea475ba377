-- Begins a transaction that sends to one of them, and stays open.
BEGIN;
SELECT {name}.send_messages('{b}', '{x}', '{NULL}', '{false}', '{NULL}', 1000000);
