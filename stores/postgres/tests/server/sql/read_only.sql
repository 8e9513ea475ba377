-- Lets the sessions of a database only read.
ALTER DATABASE {name} SET default_transaction_read_only = on
