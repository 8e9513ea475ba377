-- Starts three instances.
SELECT {name}.start_instances('{a,b,c}', '{x,x,x}', '{NULL,NULL,NULL}', '{NULL,NULL,NULL}', '{}', '{}', '{}', '{}', '{}', '{}', NULL)
