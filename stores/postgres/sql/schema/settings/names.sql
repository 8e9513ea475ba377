-- Where functions without planner settings look for names: not in the schemas of the session, in which other
-- roles may have made something of the same name.
SET search_path TO pg_catalog, {schema}, pg_temp
