-- Bounds the statements of this transaction otherwise than those of the session, and lets them wait for others.
SELECT set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $1, true),
    set_config('lock_timeout', '0', true)
