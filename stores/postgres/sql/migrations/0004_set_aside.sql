-- Rows that were set aside, by the instance that they go with when it is deleted.
CREATE INDEX set_aside_instance ON {schema}.set_aside (instance_id);
