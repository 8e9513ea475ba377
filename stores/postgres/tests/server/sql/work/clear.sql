-- Withdraws what was queued.
SELECT {name}.withdraw_work('{a,a,a}', '{1,1,1}', '{1,2,3}', 0)
