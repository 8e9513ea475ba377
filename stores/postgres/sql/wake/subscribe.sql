-- Subscribes this connection to the notifications of other processes.
LISTEN {channel}
