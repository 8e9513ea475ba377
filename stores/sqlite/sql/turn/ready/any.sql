-- Tells whether any instance is ready.
SELECT EXISTS (SELECT 1 FROM instances WHERE turn = 1)
