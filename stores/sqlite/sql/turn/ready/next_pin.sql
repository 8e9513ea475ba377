-- Finds the next engine version that ready instances are pinned to: one look at the index for each.
SELECT min(pin) FROM instances WHERE turn = 1 AND pin > ?1
