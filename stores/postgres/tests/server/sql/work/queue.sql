-- Queues an activity without a session and two on a shared one.
SELECT {name}.lock_lines('{""}', '{S}');
SELECT {name}.queue_work('{one,two,three}', '{a,a,a}', '{1,1,1}', '{1,2,3}', '{"","",""}', '{"","",""}', '{NULL,S,S}',
    '{NULL,NULL,NULL}', {name}.now_ms(NULL));
