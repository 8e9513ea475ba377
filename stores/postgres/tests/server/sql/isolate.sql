-- Lets transactions see no more than there was when they began.
ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'
