-- Commits a turn that appends an event, queues an activity and sends a message.
SELECT * FROM {name}.commit_turns(NULL, '{{token}}', '{1}', '{o}', '{1}', '{NULL}', '{Running}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
    '{NULL}', '{f}', '{NULL}', '{f}', '{1}', '{1}', '{x}', '{x}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
    '{1}', '{x}', '{a}', '{1}', '{1}', '{""}', '{""}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{1}', '{z}', '{x}', '{NULL}', '{t}',
    '{NULL}', p_rising => '{1}')
