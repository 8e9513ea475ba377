-- Holds back activities that cannot be read for as much longer as the time jumps forward: those that are held
-- back beyond ?1, by ?2.
UPDATE torn_work SET until = min(until, 9223372036854775807 - ?2) + ?2 WHERE until > ?1
