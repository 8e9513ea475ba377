-- Makes a role that may log in, with its name as password.
CREATE ROLE {name} LOGIN PASSWORD '{name}'
