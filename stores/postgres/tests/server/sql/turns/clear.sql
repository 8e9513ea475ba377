-- Deletes what was started.
SELECT {name}.erase_instances('{a,b,c,z}')
