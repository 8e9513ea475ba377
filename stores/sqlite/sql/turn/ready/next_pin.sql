-- Finds the next engine version that ready instances are pinned to. One look at the index each.
SELECT min(pin) FROM instances WHERE turn = 1 AND pin > ?1
