-- Makes a role that may log in, with its name as password.
-- Servers before 14 keep passwords in another form, unless they are told.
SET password_encryption TO 'scram-sha-256';
CREATE ROLE {name} LOGIN PASSWORD '{name}'
