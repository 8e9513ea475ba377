-- Sends many messages to an instance that become due before the start of another.
SELECT {name}.send_messages(
    array_fill('crowd'::text, '{300}'), array_fill('x'::text, '{300}'), array_fill(10::bigint, '{300}'), array_fill(false, '{300}'),
    array_fill(NULL::text, '{300}'), 1000000
);
SELECT {name}.start_instances('{other}', '{x}', '{20}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
