-- Tells whether a routed instance is ready: which worker is given it is decided by the fetch.
SELECT EXISTS (SELECT 1 FROM instances WHERE turn = 1 AND pin < 0)
