-- Gives a lease back whose caller is gone, and the claim that it made.
SELECT {name}.unlease_work_items('{{token}}', '{true}', {now})
