-- Passes over an activity that cannot be read, and gives the claim back that was made for it.
SELECT {name}.pass_over_work('{token}', 'why', 1000, 8, true, {now})
