-- Starts two instances, one of them later.
SELECT {name}.start_instances('{a,b}', '{x,x}', '{NULL,5000}', '{NULL,NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
