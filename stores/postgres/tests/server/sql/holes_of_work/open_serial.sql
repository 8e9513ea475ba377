-- Opens a session whose activities run one after the other.
SELECT {name}.open_session('i', 'S', NULL, true, {now})
