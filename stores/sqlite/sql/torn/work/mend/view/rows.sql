-- Lists all activities by an index alone: the place of each, its instance, its execution, and its id there.
SELECT seq, key, execution, activity FROM work INDEXED BY work_identity
