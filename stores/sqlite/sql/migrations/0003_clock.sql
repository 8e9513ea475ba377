-- The time of the file, on which all processes that have it open agree.

-- At `awake_ns` of the time awake of the machine, the time of the file was `store_ms`; from there it goes on at
-- the rate of the machine. `slept_ns` is how much of the machine's sleep is counted in `store_ms`. `boot` names
-- the run of the machine from one start to the next, '' if it is not known. `noted_ms` is a time that the file
-- has reached: it is written now and then, for a file that another run of the machine opens.
CREATE TABLE clock (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    store_ms INTEGER NOT NULL,
    awake_ns INTEGER NOT NULL,
    slept_ns INTEGER NOT NULL,
    boot     TEXT NOT NULL,
    noted_ms INTEGER NOT NULL
) STRICT;
