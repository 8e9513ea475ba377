-- Keeps an instance, as a transaction of an application that has sent to it and stays open.
BEGIN;
SELECT {name}.send_messages('{a}', '{y}', '{NULL}', '{false}', '{NULL}', NULL)
