-- Makes something, which a server that only reads refuses.
CREATE TABLE {schema}.never_made (number BIGINT)
