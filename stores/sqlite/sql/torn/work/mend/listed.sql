-- Lists the activities that could not be read, or not be removed.
SELECT row, attempts, until FROM torn_work
