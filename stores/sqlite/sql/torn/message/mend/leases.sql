-- Lists the leases of instances, with the messages that each holds.
SELECT key, token, batch FROM instances WHERE turn = 2 AND token IS NOT NULL
