-- Sets the timeouts of this transaction to $1 instead of those of the session, and lets it wait for locks
-- without a limit of its own.
SELECT set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $1, true),
    set_config('lock_timeout', '0', true)
