-- Lets the role of that name use what is in the schema of that name, and make nothing.
GRANT USAGE ON SCHEMA {name} TO {name};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {name};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {name}
